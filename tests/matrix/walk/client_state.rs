//! The state of a client of a walk (its last request, its transaction), and the comparison of its replies, which
//! depends on that state.

use dunlin::engine::{Entry, Table};

use crate::left_out;
use crate::reply::Reply;
use crate::shape::{Sameness, line};
use crate::walk::pair::Received;
use crate::walk::volatile;

/// The number of characters of a long reply that are shown.
const SHOWN: usize = 600;

/// A client's last request, and those that it has queued.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientState<'t> {
    last: Option<&'t Entry>,
    queued: Vec<Option<&'t Entry>>,
    in_transaction: bool,
    monitors: bool,
    waits: bool,
}

impl<'t> ClientState<'t> {
    /// Records that the client sends this request.
    pub(super) fn begin(&mut self, table: &'t Table, words: &[Vec<u8>]) {
        self.last = meant(table, words);
        self.waits = true;
    }

    /// Records the data that the client received. A push may concern anything, unless the request was about pushes.
    pub(super) fn end(&mut self, received: &Received) {
        let is_about_pushes = self.command().ends_with("subscribe");
        if !received.replies.iter().any(|reply| is_about_pushes || !matches!(reply, Reply::Push(_))) {
            return;
        }
        self.waits = false;
        let has = |text: &[u8]| received.replies.contains(&Reply::Simple(text.to_vec()));
        match self.command() {
            _ if has(b"QUEUED") => self.queued.push(self.last),
            "exec" | "discard" => (self.in_transaction, self.queued) = (false, Vec::new()),
            "reset" => *self = ClientState::default(),
            "multi" => self.in_transaction |= has(b"OK"),
            "monitor" => self.monitors |= has(b"OK"),
            _ => {}
        }
    }

    /// True when the client receives the requests of others (MONITOR).
    pub(super) fn monitors(&self) -> bool {
        self.monitors
    }

    /// True while the client's requests are queued (MULTI).
    pub(super) fn is_in_transaction(&self) -> bool {
        self.in_transaction
    }

    /// True while nothing has come for its last request.
    pub(super) fn waits(&self) -> bool {
        self.waits
    }

    /// The full name of the command that it called last.
    pub(super) fn command(&self) -> &str {
        self.last.map_or("", |entry| entry.name.as_str())
    }
}

/// The command that a request is about: for a script that calls one, that one.
fn meant<'t>(table: &'t Table, words: &[Vec<u8>]) -> Option<&'t Entry> {
    let id = table.find(words.first()?)?;
    let inner = words.get(1).and_then(|word| table.find_subcommand(id, word));
    let entry = table.entry(inner.unwrap_or(id));
    let is_script = entry.name.starts_with("eval") || entry.name.starts_with("fcall");
    if !is_script {
        return Some(entry);
    }
    let keys = words.get(2).and_then(|count| str::from_utf8(count).ok()?.parse::<usize>().ok());
    let called = keys.and_then(|keys| words.get(3_usize.checked_add(keys)?..)).and_then(|words| meant(table, words));
    called.or(Some(entry))
}

/// The result of comparing the replies of two servers.
pub(super) enum Verdict {
    /// The replies are equal to the byte.
    Exact,
    /// The replies are equal except for parts that may differ.
    Masked,
    /// The replies differ; the difference.
    Unlike(String),
}

/// Compares the data that a client receives; `is_sender` is true for the client that has just sent a request.
pub(super) fn compared(state: &ClientState<'_>, is_sender: bool, real: &Received, ours: &Received) -> Verdict {
    match real == ours {
        true => Verdict::Exact,
        false => unlike(state, is_sender, real, ours).map_or(Verdict::Masked, Verdict::Unlike),
    }
}

/// The difference in the data that a client receives, beyond the parts that may differ, if there is one.
fn unlike(state: &ClientState<'_>, is_sender: bool, real: &Received, ours: &Received) -> Option<String> {
    let [real_replies, our_replies] = [real, ours].map(|received| volatile::arranged(received.replies.clone()));
    let all_alike = |real: &[Reply], ours: &[Reply]| {
        real.len() == ours.len() && real.iter().zip(ours).all(|(real, ours)| are_alike(state, real, ours))
    };
    // A request that continues after a wait has its own turn here, at whose end prefixes are invalidated.
    let is_same = real.closed == ours.closed
        && (all_alike(&real_replies, &our_replies)
            || !is_sender && all_alike(&tracking_last(&real_replies), &tracking_last(&our_replies)));
    if is_same {
        return None;
    }
    if let Some(fault) = unlike_in_queue(state, &real_replies, &our_replies) {
        return Some(fault);
    }
    let masked = |replies: Vec<Reply>| {
        replies.into_iter().map(|reply| volatile::masked_message(volatile::masked(state.command(), reply))).collect()
    };
    let [real_replies, our_replies] = [(real, real_replies), (ours, our_replies)]
        .map(|(received, replies)| shown(&Received { replies: masked(replies), ..*received }));
    let [shown_real, shown_ours] = around_difference(&real_replies, &our_replies);
    Some(format!("{:?}\n  real: {shown_real}\n  ours: {shown_ours}", state.command()))
}

/// Redis sends an invalidation before or after the event, depending on the command; and the order of the clients of a
/// prefix, and so the moment when a disconnected one is noticed, is random.
fn tracking_last(replies: &[Reply]) -> Vec<Reply> {
    let mut sorted = replies.to_vec();
    sorted.sort_by_key(is_about_tracking);
    sorted
}

fn is_about_tracking(reply: &Reply) -> u8 {
    let (Reply::Push(words) | Reply::Array(words)) = reply else { return 0 };
    let has = |place: usize, text: &[u8]| matches!(words.get(place), Some(Reply::Bulk(word)) if word == text);
    match () {
        () if has(0, b"tracking-redir-broken") => 2,
        () if has(0, b"invalidate") || has(1, b"__redis__:invalidate") => 1,
        () => 0,
    }
}

/// The first reply within EXEC that differs, if any.
fn unlike_in_queue(state: &ClientState<'_>, real: &[Reply], ours: &[Reply]) -> Option<String> {
    let answers = real.iter().zip(ours).find_map(|pair| match pair {
        (Reply::Array(real), Reply::Array(ours)) if state.command() == "exec" && real.len() == ours.len() => {
            Some((real, ours))
        }
        _ => None,
    });
    let (real, ours) = answers?;
    let nth = (0..real.len()).find(|&nth| !is_answer_of_queue(state, real.len(), nth, &real[nth], &ours[nth]))?;
    let command = state.queued.get(nth).copied().flatten().map_or("", |entry| entry.name.as_str());
    let queued = state.queued.len();
    let [real, ours] = around_difference(&full(&real[nth]), &full(&ours[nth]));
    Some(format!("answer {nth} of {queued}: {command}\n  real: {real}\n  ours: {ours}"))
}

/// The parts of two long texts around the place where they begin to differ.
fn around_difference(one: &str, other: &str) -> [String; 2] {
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let start = same.saturating_sub(SHOWN / 2);
    [one, other].map(|text| text.chars().skip(start).take(SHOWN).collect())
}

fn are_alike(state: &ClientState<'_>, real: &Reply, ours: &Reply) -> bool {
    if real == ours {
        return true;
    }
    let is_behind = || state.command() == "exec" && is_answer_of_queue(state, usize::MAX, 0, real, ours);
    if let ("exec", Reply::Array(real), Reply::Array(ours)) = (state.command(), real, ours)
        && real.len() == ours.len()
    {
        let [real, ours] = [real, ours].map(|replies| volatile::arranged(replies.clone()));
        let mut pairs = real.iter().zip(&ours).enumerate();
        let is_one_by_one = pairs.all(|(place, (one, other))| is_answer_of_queue(state, real.len(), place, one, other));
        return is_one_by_one || is_behind();
    }
    is_behind() || is_like(state.last, real, ours)
}

/// Whether both are equal as the replies to the command that was queued at that place. A command that has several
/// replies makes it uncertain which one that is, and whether its reply is within that of EXEC or after it.
fn is_answer_of_queue(state: &ClientState<'_>, answers: usize, place: usize, real: &Reply, ours: &Reply) -> bool {
    let several = |entry: &Option<&Entry>| entry.is_some_and(|entry| entry.name.ends_with("subscribe"));
    let is_certain = state.queued.len() == answers && !state.queued.iter().any(several);
    let candidates = if is_certain { &state.queued[place..=place] } else { &state.queued[..] };
    let [real, ours] = [real, ours].map(|reply| volatile::without_channel_left(reply.clone()));
    candidates.iter().any(|entry| is_like(*entry, &real, &ours))
}

fn is_like(entry: Option<&Entry>, real: &Reply, ours: &Reply) -> bool {
    let command = entry.map_or("", |entry| entry.name.as_str());
    let [real, ours] = [real, ours].map(|reply| volatile::masked_message(volatile::masked(command, reply.clone())));
    let sameness = entry.map_or(Sameness::Exact, left_out::sameness_in_walks);
    real == ours
        || volatile::are_near(command, &real, &ours)
        || sameness != Sameness::Exact && line(&real, sameness) == line(&ours, sameness)
}

fn shown(received: &Received) -> String {
    let mut text = received.replies.iter().map(full).collect::<Vec<_>>().join(" then ");
    if received.closed {
        text.push_str(" (closed)");
    }
    if text.is_empty() { "(nothing)".to_owned() } else { text }
}

/// The whole of a reply.
fn full(reply: &Reply) -> String {
    match reply {
        Reply::Array(items) => format!("[{}]", items.iter().map(full).collect::<Vec<_>>().join(" ")),
        Reply::Push(items) => format!(">[{}]", items.iter().map(full).collect::<Vec<_>>().join(" ")),
        Reply::Set(items) => format!("~[{}]", items.iter().map(full).collect::<Vec<_>>().join(" ")),
        Reply::Map(pairs) => {
            let pair = |(key, value): &(Reply, Reply)| format!("{}: {}", full(key), full(value));
            format!("%[{}]", pairs.iter().map(pair).collect::<Vec<_>>().join(" "))
        }
        Reply::Bulk(bytes) | Reply::Verbatim(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        Reply::Error(text) => format!("-{}", text.escape_ascii()),
        Reply::Simple(text) => format!("+{}", text.escape_ascii()),
        Reply::Integer(number) => number.clone(),
        other => format!("{other:?}"),
    }
}
