//! A real server, which is reset to the same data before every request.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::process::{Process, Program};
use crate::server::{Answer, DATA, Form, Manner, Server, encoded};

/// The time after which a real server without a reply to a request counts as blocked.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The request that a client sends after the tested one: its reply comes after the other's.
const END: &str = "the end of the answer";

/// A `redis-server` of our own, with one client.
pub(crate) struct Oracle {
    process: Process,
    client: TcpStream,
}

impl Oracle {
    /// Starts the real server and connects to it.
    pub(crate) fn start(program: &Program) -> Oracle {
        let process = Process::start(program).expect("the real server starts");
        let client = connect(&process);
        Oracle { process, client }
    }

    /// Brings the server back to the start, and the client with it.
    fn prepare(&mut self, form: Form) {
        let mut commands: Vec<&[&str]> = vec![&["RESET"], &["FLUSHALL"], &["ACL", "DELUSER", "username"]];
        commands.extend(DATA);
        if form == Form::Resp3 {
            commands.push(&["HELLO", "3"]);
        }
        self.send(&commands.iter().flat_map(|command| encoded(Form::Resp2, &owned(command))).collect::<Vec<_>>());
        let answer = self.receive();
        assert!(!answer.closed && !answer.waits, "the real server does not get ready");
    }

    fn ask(&mut self, manner: Manner, form: Form, words: &[Vec<u8>]) -> Answer {
        let (before, after) = manner.around();
        let bytes =
            |commands: &[&[&str]]| commands.iter().flat_map(|words| encoded(Form::Resp2, &owned(words))).collect();
        let (before, after): (Vec<u8>, Vec<u8>) = (bytes(before), bytes(after));
        self.send(&[before, encoded(form, words), after].concat());
        let answer = self.receive();
        if answer.closed || answer.waits {
            self.client = connect(&self.process);
        }
        answer.within(manner)
    }

    /// Sends bytes, and after them the request that marks the end of the reply.
    fn send(&mut self, bytes: &[u8]) {
        let bytes = [bytes, &encoded(Form::Resp2, &owned(&["ECHO", END]))].concat();
        self.client.write_all(&bytes).expect("the real server reads");
    }

    /// Reads up to the mark of the end, which does not come when the server hangs up or lets the client wait.
    fn receive(&mut self) -> Answer {
        let end = format!("${}\r\n{END}\r\n", END.len()).into_bytes();
        let mut answer = Answer::default();
        let mut chunk = [0; 64 * 1024];
        while !answer.closed && !answer.waits && !answer.bytes.ends_with(&end) {
            match self.client.read(&mut chunk) {
                Ok(0) => answer.closed = true,
                Ok(count) => answer.bytes.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => answer.closed = true,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    answer.waits = true
                }
                Err(error) => panic!("the real server cannot be read: {error}"),
            }
        }
        if answer.bytes.ends_with(&end) {
            answer.bytes.truncate(answer.bytes.len() - end.len());
        }
        answer
    }
}

impl Server for Oracle {
    fn answer(&mut self, manner: Manner, form: Form, words: &[Vec<u8>]) -> Answer {
        // The request comes after the answers to what prepares it: AUTH keeps quiet while others are still to be sent.
        self.prepare(form);
        self.ask(manner, form, words)
    }

    fn next_answer(&mut self, words: &[Vec<u8>]) -> Answer {
        self.ask(Manner::Alone, Form::Resp2, words)
    }
}

fn connect(process: &Process) -> TcpStream {
    let client = TcpStream::connect(process.address).expect("the real server accepts");
    client.set_nodelay(true).expect("a socket has options");
    client.set_read_timeout(Some(TIMEOUT)).expect("a socket has options");
    client
}

fn owned(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}
