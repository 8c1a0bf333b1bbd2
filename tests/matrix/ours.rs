//! Our engine, new for every request, with the invariants that are checked after each of them.

use dunlin::commands::FAMILIES;
use dunlin::engine::state::host::NoHost;
use dunlin::engine::{Engine, Flow, Now, Origin, Permission, SessionId, Settings, Table};
use dunlin::resp::{Limits, Parser, Protocol};

use crate::limits;
use crate::server::{Answer, DATA, Form, Manner, Server, encoded};

/// Noon of 2026-01-01: any moment would do.
const START: Now = Now { unix_us: 1_767_268_800_000_000 };

/// No answer to a request that is made here is longer.
const LONGEST_ANSWER_BYTES: usize = 4 << 20;

/// Our side: the engine of the last request.
#[derive(Default)]
pub(crate) struct Ours {
    last: Option<TestEngine>,
}

impl Server for Ours {
    fn answer(&mut self, manner: Manner, form: Form, words: &[Vec<u8>]) -> Answer {
        let mut tested = TestEngine::new();
        tested.ask_all(DATA);
        if form == Form::Resp3 {
            tested.speak_resp3();
        }
        let changes = tested.engine.stats.changes;
        let describe = || words.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ");
        let given = words.iter().map(Vec::len).sum::<usize>() + tested.engine.databases.memory_bytes();
        let most = |answer: &Answer| limits::bytes_for(&words[0], given + answer.bytes.len());
        let answer = limits::within_limits(describe, most, || tested.ask_in(manner, form, words));
        tested.engine.databases.iter().for_each(|database| database.check());
        assert!(answer.bytes.len() <= LONGEST_ANSWER_BYTES, "{}: {} bytes", describe(), answer.bytes.len());
        if answer.is_refusal() {
            assert_eq!(tested.engine.stats.changes, changes, "{}: was refused and changed something", describe());
        }
        if !answer.closed && !answer.waits {
            tested.expect_to_be_in_sync(&describe());
        }
        self.last = Some(tested);
        answer
    }

    fn next_answer(&mut self, words: &[Vec<u8>]) -> Answer {
        self.last.as_mut().expect("a request came before").ask(Form::Resp2, words)
    }
}

struct TestEngine {
    engine: Engine,
    client: SessionId,
}

impl TestEngine {
    fn new() -> TestEngine {
        let settings = Settings { debug_command: Permission::Yes, ..Settings::default() };
        let mut engine = Engine::new(Table::of(FAMILIES), settings, 1, START, Box::new(NoHost::default()));
        let origin = Origin { is_local: true, ..Origin::default() };
        // A real server counts its internal clients, too, so no client has number 1 there.
        let first = engine.connect(START, origin.clone()).expect("there is room");
        engine.disconnect(first);
        let client = engine.connect(START, origin).expect("there is room");
        TestEngine { engine, client }
    }

    fn speak_resp3(&mut self) {
        let session = self.engine.sessions.get_mut(self.client).expect("the client is connected");
        session.protocol = Protocol::Resp3;
    }

    /// Sends a request in the given manner.
    fn ask_in(&mut self, manner: Manner, form: Form, words: &[Vec<u8>]) -> Answer {
        let (before, after) = manner.around();
        let mut all = self.ask_all(before);
        let answer = self.ask(form, words);
        all.extend(&answer.bytes);
        if !answer.closed {
            all.extend(self.ask_all(after));
        }
        Answer { bytes: all, ..answer }.within(manner)
    }

    fn ask_all(&mut self, commands: &[&[&str]]) -> Vec<u8> {
        let words = |command: &&[&str]| command.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
        commands.iter().flat_map(|command| self.ask(Form::Resp2, &words(command)).bytes).collect()
    }

    fn ask(&mut self, form: Form, words: &[Vec<u8>]) -> Answer {
        let limits = Limits { max_bulk_bytes: self.engine.settings.max_bulk_bytes, authenticated: true };
        let bytes = encoded(form, words);
        let mut parser = Parser::new();
        let request = parser.next(&bytes, &limits).expect("the request is well formed").expect("the request is whole");
        let mut answer = Answer::default();
        let flow = self.engine.run(START, self.client, request, &mut answer.bytes);
        self.engine.finish(START, request);
        answer.closed = matches!(flow, Flow::Close | Flow::Abort);
        answer.waits = matches!(flow, Flow::HeldBack(_));
        answer
    }

    /// The client is still answered, once for each request.
    fn expect_to_be_in_sync(&mut self, context: &str) {
        let answer = self.ask(Form::Resp2, &[b"PING".to_vec()]);
        assert_eq!(answer.bytes, b"+PONG\r\n", "{context}: the client is out of step");
    }
}
