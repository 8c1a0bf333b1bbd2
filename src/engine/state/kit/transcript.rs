//! The journal as a transcript, in the format of this project's own tests: it can be read, stored and replayed, here
//! or against a real Redis.
//!
//! Each client is a connection, the first without a name. Every one begins in its database and protocol, so the replies
//! mean the same in each pass of the tests. Replies that depend on chance or on the server itself are not compared,
//! secrets are left out with a remark, and messages of channels are not included.

use std::collections::BTreeMap;

use crate::engine::spec::Table;
use crate::engine::state::kit::reply_text::reply_lines;
use crate::engine::state::kit::{Entry, Journal, Source, quoted};
use crate::resp::Protocol;

/// The shortest passage of time that is written, in microseconds.
const PAUSE_US: i64 = 10_000;

struct Writer<'j> {
    table: &'j Table,
    text: String,
    connections: BTreeMap<u64, String>,
    /// The moment that the transcript has reached, in unix microseconds.
    reached_us: i64,
    /// Commands that wait for their replies.
    waiting: Vec<&'j Entry>,
}

impl Journal {
    /// The commands that clients sent, and their replies.
    pub fn transcript(&self, table: &Table) -> String {
        let sent = || self.all().filter(|entry| matches!(entry.source, Source::Client | Source::Queue));
        let reached_us = sent().next().map_or(0, |entry| entry.moment.unix_us);
        let text = format!("== {} commands\n", sent().count());
        let mut writer = Writer { table, text, connections: BTreeMap::new(), reached_us, waiting: Vec::new() };
        sent().for_each(|entry| writer.add(entry));
        writer.receive(u64::MAX);
        writer.text
    }
}

impl<'j> Writer<'j> {
    fn add(&mut self, entry: &'j Entry) {
        self.receive(entry.number);
        self.pass(entry);
        let connection = self.connection(entry);
        let words: Vec<String> = entry.words().map(quoted).collect();
        let words = words.join(" ");
        if entry.has_secrets {
            return self.line(&format!("# {connection}> {words}"));
        }
        if entry.waited.is_some() || entry.reply.is_none() {
            self.waiting.push(entry);
            return self.line(&format!("{connection}>& {words}"));
        }
        self.line(&format!("{connection}> {words}"));
        self.expect(entry);
    }

    /// Writes the replies that came before the entry of that number began.
    fn receive(&mut self, number: u64) {
        let is_answered = |entry: &&Entry| entry.waited.is_some_and(|last| last < number) && entry.reply.is_some();
        for entry in self.waiting.extract_if(.., |entry| is_answered(entry)).collect::<Vec<_>>() {
            let connection = self.connection(entry);
            self.line(&format!("{connection}<"));
            self.expect(entry);
        }
    }

    fn expect(&mut self, entry: &Entry) {
        let name = entry.command.map(|id| self.table.entry(id));
        let is_free = name.is_some_and(|command| {
            let tips = command.command.tips;
            command.name == "hello" || tips.iter().any(|tip| tip.starts_with("nondeterministic_output"))
        });
        if is_free {
            return self.line("? ...");
        }
        let reply = entry.reply.as_deref().unwrap_or_default();
        reply_lines(reply, false, entry.protocol).iter().for_each(|line| self.line(line));
    }

    /// Writes the time that passed until an entry began.
    fn pass(&mut self, entry: &Entry) {
        let passed_us = entry.moment.unix_us.saturating_sub(self.reached_us);
        if passed_us >= PAUSE_US {
            self.line(&format!("@ +{}ms", passed_us / 1000));
            self.reached_us += passed_us / 1000 * 1000;
        }
    }

    /// The name of the connection of an entry's client, which is opened at its first entry.
    fn connection(&mut self, entry: &Entry) -> String {
        if let Some(name) = self.connections.get(&entry.client) {
            return name.clone();
        }
        let name = match self.connections.len() {
            0 => String::new(),
            count => format!("c{}", count + 1),
        };
        self.connections.insert(entry.client, name.clone());
        let version = if entry.protocol == Protocol::Resp3 { 3 } else { 2 };
        self.line(&format!("{name}> HELLO {version}\n? ..."));
        if entry.database != 0 {
            self.line(&format!("{name}> SELECT {}\nOK", entry.database));
        }
        name
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}
