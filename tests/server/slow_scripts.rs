//! Scripts that exceed `busy-reply-threshold`: the replies to other clients, and the end of such a script.

use std::thread;
use std::time::Duration;

use dunlin::Server;

use crate::files::{Folder, ask};
#[cfg(unix)]
use crate::program::Running;
use crate::timeout::{TIMEOUT, wait_until};
use crate::wire::{Wire, connect, request};

const BUSY: &str = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n";

type Client = Wire<std::net::TcpStream>;

fn impatient() -> Server {
    Server::builder().set("busy-reply-threshold", "20").start().expect("it starts")
}

fn eval(script: &str) -> Vec<u8> {
    request(&[b"EVAL", script.as_bytes(), b"0"])
}

/// Sends requests until the server replies that it is busy.
fn wait_until_busy(client: &mut Client) {
    wait_until("the script takes too long", || {
        client.send("PING\r\n");
        client.read_until(b"\r\n") == BUSY
    });
}

/// Starts a script that does not end by itself, and answers its client and another one.
fn stuck(server: &Server, script: &str) -> (Client, Client) {
    let (mut caller, mut other) = (connect(server.addr()), connect(server.addr()));
    caller.send(eval(script));
    wait_until_busy(&mut other);
    (caller, other)
}

#[test]
fn a_script_that_has_changed_nothing_can_be_killed_whatever_it_does() {
    for script in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "local function again() while true do pcall(again) end end again()",
        "xpcall(function() while true do end end, function() while true do end end) while true do end",
        "while true do xpcall(function() error('x') end, function() while true do end end) end",
        "while true do coroutine.wrap(function() while true do pcall(error) end end)() end",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
        "while true do redis.pcall('GET', 'key') end",
        "while true do redis.pcall('NOPE') end",
        "local t = setmetatable({}, {__index = function(t, k) while true do end end}) return t.x",
        "table.sort({1, 2, 3}, function() while true do end end)",
        "load(function() return ' ' end)",
        "while true do loadstring('return 1')() end",
        "string.gsub(('x'):rep(100), 'x', function() while true do end end)",
        "string.find(('a'):rep(100000), ('a*'):rep(100) .. 'b')",
    ] {
        let server = impatient();
        let (mut caller, mut other) = stuck(&server, script);
        other.ask("SCRIPT KILL\r\n", "+OK\r\n");
        let answer = caller.read_until(b"\r\n");
        assert!(answer.starts_with("-ERR Error running script") || answer.contains("killed by user"), "{answer}");
        other.ask("SCRIPT KILL\r\n", "-NOTBUSY No scripts in execution right now.\r\n");
        caller.ask(eval("return 7"), ":7\r\n");
    }
}

#[test]
fn a_script_that_has_written_cannot_be_killed_but_the_server_can_end() {
    let server = impatient();
    let (mut caller, mut other) = stuck(&server, "redis.call('SET', 'key', 'value') while true do end");
    other.send("SCRIPT KILL\r\n");
    assert!(other.read_until(b"\r\n").starts_with("-UNKILLABLE "));
    for refused in ["GET key\r\n", "FLUSHALL\r\n", "SCRIPT FLUSH\r\n", "SCRIPT FLUSH ASYNC\r\n", "EVAL x 0\r\n"] {
        other.ask(refused, BUSY);
    }
    for saves in ["SHUTDOWN\r\n", "SHUTDOWN SAVE\r\n", "SHUTDOWN NOW FORCE\r\n"] {
        other.ask(saves, BUSY);
    }
    other.send("SHUTDOWN NOSAVE\r\n");
    assert_eq!(other.rest(), b"");
    assert_eq!(caller.rest(), b"");
}

/// A program with save points whose script has done its first half, and ends when `last` does.
#[cfg(unix)]
fn amid_a_script(folder: &Folder, last: &str) -> (Running, Client) {
    let program = folder.program(&["--save", "3600 1", "--busy-reply-threshold", "20"]);
    let mut caller = connect(program.address());
    caller.ask("SET key before\r\nSAVE\r\n", "+OK\r\n+OK\r\n");
    caller.send(eval(&format!("redis.call('SET', 'key', 'half') {last} redis.call('SET', 'key', 'whole')")));
    wait_until_busy(&mut connect(program.address()));
    (program, caller)
}

#[test]
#[cfg(unix)]
fn a_signal_during_a_script_ends_the_server_when_the_script_has_ended() {
    let folder = Folder::new("signal-in-script");
    let (mut program, _caller) = amid_a_script(&folder, UNTIL_GUESTS_COME);
    program.signal("TERM");
    assert!(program.line_with("scheduling shutdown").is_some());
    wait_until_busy(&mut connect(program.address()));
    let _guests: Vec<_> = (0..6).map(|_| connect(program.address())).collect();
    assert!(program.end().0.success());
    assert_eq!(ask(&folder.server(), "GET key"), "whole");
}

#[test]
#[cfg(unix)]
fn a_second_signal_during_a_script_saves_nothing_of_what_it_has_done() {
    let folder = Folder::new("signals-in-script");
    let (mut program, _caller) = amid_a_script(&folder, "while true do end");
    program.signal("TERM");
    assert!(program.line_with("scheduling shutdown").is_some());
    program.signal("TERM");
    assert_eq!(program.end().0.code(), Some(1));
    assert_eq!(ask(&folder.server(), "GET key"), "before");
}

/// A script that runs for a while of the machine's time.
const SOME_TIME: &str = "local start = os.clock() while os.clock() - start < 0.6 do end ";

/// A script that runs until more clients have connected: [`let_go`] ends it. A few may leave meanwhile.
const UNTIL_GUESTS_COME: &str =
    "local function clients() return tonumber(redis.call('INFO', 'clients'):match('connected_clients:(%d+)')) end
    local before = clients() repeat until clients() >= before + 3 ";

/// Sends the guests for which a script waits.
#[must_use = "they have to stay until it has ended"]
fn let_go(server: &Server) -> Vec<Client> {
    (0..6).map(|_| connect(server.addr())).collect()
}

#[test]
fn a_transaction_continues_after_a_slow_script() {
    let server = impatient();
    let (mut caller, mut other) = (connect(server.addr()), connect(server.addr()));
    caller.ask("MULTI\r\nSET before 1\r\n", "+OK\r\n+QUEUED\r\n");
    caller.ask(eval(&format!("{UNTIL_GUESTS_COME} return redis.call('INCR', 'before')")), "+QUEUED\r\n");
    caller.ask(eval(&format!("{SOME_TIME} return redis.call('INCR', 'before')")), "+QUEUED\r\n");
    caller.ask("INCR before\r\n", "+QUEUED\r\n");
    caller.send("EXEC\r\n");
    wait_until_busy(&mut other);
    let _guests = let_go(&server);
    caller.expect("*4\r\n+OK\r\n:2\r\n:3\r\n:4\r\n");
    other.ask("GET before\r\n", "$1\r\n4\r\n");
}

#[test]
fn a_script_whose_client_disconnected_is_finished() {
    let server = impatient();
    let (caller, mut other) = stuck(&server, &format!("{UNTIL_GUESTS_COME} redis.call('SET', 'key', 'value')"));
    drop(caller);
    let _guests = let_go(&server);
    wait_until("the script has ended", || {
        other.send("EXISTS key\r\n");
        other.read_until(b"\r\n") == ":1\r\n"
    });
    other.ask(eval("return 7"), ":7\r\n");
}

#[test]
fn blocked_clients_are_served_after_a_slow_script_which_is_one_step() {
    let server = impatient();
    let (mut waiting, mut watching) = (connect(server.addr()), connect(server.addr()));
    waiting.send("BLPOP list 0\r\n");
    watching.ask("SET key 0\r\nWATCH key\r\n", "+OK\r\n+OK\r\n");
    let script = format!(
        "redis.call('RPUSH', 'list', 'first') redis.call('INCR', 'key') {UNTIL_GUESTS_COME}
         redis.call('LPUSH', 'list', 'last') redis.call('DECR', 'key') return redis.call('LLEN', 'list')"
    );
    server.wait_until_blocked("list", TIMEOUT).expect("it waits");
    let (mut caller, _other) = stuck(&server, &script);
    let _guests = let_go(&server);
    caller.expect(":2\r\n");
    waiting.expect("*2\r\n$4\r\nlist\r\n$4\r\nlast\r\n");
    watching.ask("MULTI\r\nGET key\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n*-1\r\n");
}

#[test]
fn without_a_threshold_no_client_gets_busy() {
    let server = Server::builder().set("busy-reply-threshold", "0").start().expect("it starts");
    let (mut caller, mut other) = (connect(server.addr()), connect(server.addr()));
    caller.send(eval(&format!("{SOME_TIME} return 7")));
    other.ask("PING\r\n", "+PONG\r\n");
    caller.expect(":7\r\n");
}

#[test]
fn a_direct_client_waits_for_its_slow_script_and_others_get_busy() {
    let server = impatient();
    let mut other = connect(server.addr());
    thread::scope(|scope| {
        let call = scope.spawn(|| {
            let mut client = server.client().expect("there is room");
            client.call(["EVAL", &format!("{UNTIL_GUESTS_COME} return 7"), "0"])
        });
        wait_until_busy(&mut other);
        let _guests = let_go(&server);
        assert_eq!(call.join().expect("it does not fail").expect("it is answered"), 7);
    });
    other.ask("PING\r\n", "+PONG\r\n");
}

#[test]
fn time_is_fixed_within_a_script_below_the_threshold() {
    let server = Server::builder().set("busy-reply-threshold", "20").start().expect("it starts");
    let mut client = connect(server.addr());
    let script = format!(
        "redis.call('SET', 'key', 'value', 'PX', 30)
         local before = redis.call('TIME') {SOME_TIME} local after = redis.call('TIME')
         return {{before[1] == after[1] and before[2] == after[2], redis.call('PTTL', 'key')}}"
    );
    client.ask(eval(&script), "*2\r\n$-1\r\n:30\r\n");
    client.ask("EXISTS key\r\n", ":0\r\n");
    let patient = Server::start().expect("it starts");
    connect(patient.addr()).ask(eval(&script), "*2\r\n:1\r\n:30\r\n");
    let frozen = Server::builder().frozen().set("busy-reply-threshold", "20").start().expect("it starts");
    let mut client = connect(frozen.addr());
    client.ask(eval(&script), "*2\r\n:1\r\n:30\r\n");
    client.ask("EXISTS key\r\n", ":1\r\n");
    frozen.advance(Duration::from_millis(30));
    client.ask("EXISTS key\r\n", ":0\r\n");
}

#[test]
fn many_servers_of_one_process_run_scripts_at_once() {
    thread::scope(|scope| {
        for number in 0..8 {
            scope.spawn(move || {
                let server = impatient();
                let mut client = connect(server.addr());
                for round in 0..50 {
                    let script =
                        format!("local t = {{}} for n = 1, 2000 do t[n] = n .. '' end return #t + {round} + {number}");
                    client.ask(eval(&script), format!(":{}\r\n", 2000 + round + number));
                }
            });
        }
    });
}

#[test]
fn the_last_five_hundred_scripts_of_eval_are_cached() {
    let server = Server::start().expect("it starts");
    let mut client = connect(server.addr());
    let name = |script: &str| String::from_utf8(dunlin::script::sha1_hex(script.as_bytes()).into()).expect("digits");
    client.ask(request(&[b"SCRIPT", b"LOAD", b"return 'kept'"]), format!("$40\r\n{}\r\n", name("return 'kept'")));
    for number in 0..600 {
        client.ask(eval(&format!("return {number}")), format!(":{number}\r\n"));
    }
    let exist = format!(
        "SCRIPT EXISTS {} {} {} {}\r\n",
        name("return 'kept'"),
        name("return 99"),
        name("return 100"),
        name("return 599")
    );
    client.ask(exist, "*4\r\n:1\r\n:0\r\n:1\r\n:1\r\n");
    client.send("INFO stats\r\n");
    client.read_until(b"\r\nevicted_scripts:");
    client.expect("100\r\n");
}
