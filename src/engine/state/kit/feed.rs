//! The feed: commands with their replies, and the names of changed keys, for readers who watch a server as it works.
//!
//! Commands that a reader has not taken yet wait here, up to [`MAX_EVENTS`] and [`MAX_BYTES`]; beyond that the oldest
//! are counted and dropped. So readers with the same filter that do not read wait for the same commands, which they
//! share; long words and replies are cut. They cost little memory and nobody's time.
//!
//! Subscribers (DUNLIN FEED) are sent each command at once instead; for them only the number of dropped ones is kept.
//!
//! Not here: the readers (`server/page`), when a command is recorded (`exec/kit/journal`), and how it is sent
//! (`exec/kit/feed`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem::take;
use std::sync::Arc;

use crate::engine::spec::{CommandId, Now, Table};
use crate::engine::state::kit::reply_text::reply_lines;
use crate::engine::state::kit::{Entry, Filter, Source};
use crate::engine::state::{Session, SessionId};
use crate::resp::Frame;

/// The most commands that wait for a reader.
pub const MAX_EVENTS: usize = 1000;
/// The most bytes of commands that wait for a reader.
const MAX_BYTES: usize = 512 << 10;
/// The most names of changed keys that wait for a reader; further ones are counted.
pub const MAX_KEYS: usize = 1000;
/// The part of a long word or reply that is shown, in bytes.
const SHOWN_BYTES: usize = 256;
/// The most words of a command that are shown.
const SHOWN_WORDS: usize = 32;
/// The longest reply that is shown whole, in bytes as RESP, unless it is one string.
const SHOWN_REPLY_BYTES: usize = 1024;

/// The bytes of a reply that filters look at.
const FILTERED_BYTES: usize = 8;

/// The readers and subscribers, and the commands that run.
#[derive(Debug, Default)]
pub struct Feed {
    readers: Vec<Reader>,
    subscribers: Vec<FeedSubscriber>,
    /// The commands without a reply so far, by their numbers.
    open: BTreeMap<u64, Entry>,
    /// The number of commands ever begun.
    begun: u64,
}

/// A reader of the feed.
#[derive(Debug)]
pub struct Reader {
    /// The session by which the reader is woken.
    pub session: SessionId,
    /// The commands that it wants.
    pub filter: Filter,
    /// Whether it wants the commands of the page as well.
    pub wants_page: bool,
    unread: Unread,
    /// The bytes of the commands that wait.
    waiting_bytes: usize,
}

/// A client that is sent the commands (DUNLIN FEED).
#[derive(Debug)]
struct FeedSubscriber {
    session: SessionId,
    /// The command by which it listens: it is sent nothing once its user may no longer run that.
    command: CommandId,
    /// The commands that it wants.
    filter: Filter,
    /// The number of commands that were dropped since it was sent one, as it is slow.
    dropped: u64,
}

/// A command that has ended, and those who want it.
#[derive(Debug)]
pub(in crate::engine) struct Ended {
    /// The command; with its whole reply if there are subscribers.
    pub(in crate::engine) entry: Entry,
    /// The readers to be woken.
    pub(in crate::engine) woken: Vec<SessionId>,
    /// The subscribers that want the command, and can take it.
    pub(in crate::engine) subscribers: Vec<SessionId>,
}

/// A command that has run.
#[derive(Debug)]
pub struct FeedEvent {
    /// Its number, from 1.
    pub number: u64,
    /// The moment when it began.
    pub moment: Now,
    /// The id of its client.
    pub client: u64,
    /// The address of its client.
    pub address: String,
    /// The name of its client.
    pub client_name: Vec<u8>,
    /// The user that its client acts as.
    pub user: Vec<u8>,
    /// The database in which it ran.
    pub database: usize,
    /// The origin of the command.
    pub source: Source,
    /// Its duration in microseconds.
    pub elapsed_us: u64,
    /// The first words of the request.
    pub words: Vec<Shown>,
    /// The number of further words.
    pub more_words: usize,
    /// Its keys among the first words, by their places.
    pub keys: Vec<usize>,
    /// Its reply.
    pub reply: ShownReply,
    /// About how many bytes it takes.
    bytes: usize,
}

/// Bytes, of which only the first are kept if they are many.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown {
    /// The first bytes.
    pub bytes: Vec<u8>,
    /// The number of all bytes.
    pub length: usize,
}

/// A reply, or what is shown of a long one.
#[derive(Debug, PartialEq, Eq)]
pub enum ShownReply {
    /// The whole reply as RESP.
    Whole(Vec<u8>),
    /// A string.
    Text(Shown),
    /// The number of elements of a reply that is too long.
    Elements(usize),
    /// A short reply to a script, as redis-cli shows it.
    Lines(String),
}

/// The events that a reader takes at a time.
#[derive(Debug, Default)]
pub struct Unread {
    /// The commands, the oldest first.
    pub events: VecDeque<Arc<FeedEvent>>,
    /// The number of commands before these that were dropped, as the reader was slow.
    pub dropped: u64,
    /// The keys that have changed.
    pub keys: BTreeSet<Box<[u8]>>,
    /// The number of times that further keys have changed.
    pub more_keys: u64,
    /// Whether further commands wait.
    pub has_more: bool,
}

impl Shown {
    fn of(bytes: &[u8]) -> Shown {
        Shown { bytes: bytes[..bytes.len().min(SHOWN_BYTES)].to_vec(), length: bytes.len() }
    }
}

impl ShownReply {
    fn of(reply: &[u8], is_for_script: bool, entry: &Entry) -> ShownReply {
        if reply.len() <= SHOWN_REPLY_BYTES {
            return match is_for_script {
                true => ShownReply::Lines(reply_lines(reply, true, entry.protocol).join("\n")),
                false => ShownReply::Whole(reply.to_vec()),
            };
        }
        let line = reply.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let count = line.get(1..).and_then(crate::value::number::parse_i64);
        let count = count.and_then(|count| usize::try_from(count).ok());
        match (line.first(), count) {
            (Some(b'$' | b'='), Some(length)) if !is_for_script => {
                let text = reply.get(line.len() + 2..).unwrap_or_default();
                ShownReply::Text(Shown { length, ..Shown::of(&text[..text.len().min(length)]) })
            }
            (Some(b'*' | b'~' | b'>' | b'%'), Some(count)) if !is_for_script => ShownReply::Elements(count),
            _ => ShownReply::Text(Shown::of(reply)),
        }
    }

    /// The reply as a frame, if it is whole.
    pub fn frame(&self) -> Option<Frame<'_>> {
        let ShownReply::Whole(bytes) = self else { return None };
        Frame::decode(bytes).ok().flatten().map(|(frame, _)| frame)
    }

    fn bytes(&self) -> usize {
        match self {
            ShownReply::Whole(bytes) => bytes.len(),
            ShownReply::Text(shown) => shown.bytes.len(),
            ShownReply::Lines(text) => text.len(),
            ShownReply::Elements(_) => 0,
        }
    }
}

impl FeedEvent {
    fn of(entry: &Entry, reply: &[u8], client: &Session, table: &Table) -> FeedEvent {
        let request = entry.request.iter().next();
        let words = || request.into_iter().flat_map(|request| request.iter());
        let command = entry.command.map(|id| table.entry(id).command);
        let places = command.zip(request).map(|(command, request)| command.keys_of(request)).unwrap_or_default();
        let mut event = FeedEvent {
            bytes: 0,
            number: entry.number,
            moment: entry.moment,
            client: entry.client,
            address: client.origin.address.clone(),
            client_name: Shown::of(&entry.client_name).bytes,
            user: client.user.name().to_vec(),
            database: entry.database,
            source: entry.source,
            elapsed_us: entry.elapsed_us,
            words: words().take(SHOWN_WORDS).map(Shown::of).collect(),
            more_words: words().count().saturating_sub(SHOWN_WORDS),
            keys: places.iter().map(|(place, _)| *place).filter(|place| *place < SHOWN_WORDS).collect(),
            reply: ShownReply::of(reply, entry.source == Source::Script, entry),
        };
        event.bytes = event.count_bytes();
        event
    }

    fn count_bytes(&self) -> usize {
        let words: usize = self.words.iter().map(|word| word.bytes.len() + size_of::<Shown>()).sum();
        size_of::<FeedEvent>() + words + self.address.len() + self.client_name.len() + self.reply.bytes()
    }
}

impl Reader {
    /// Adds a command; the oldest ones make room for it.
    fn add(&mut self, event: &Arc<FeedEvent>) {
        self.waiting_bytes += event.bytes;
        self.unread.events.push_back(Arc::clone(event));
        while self.unread.events.len() > MAX_EVENTS || self.waiting_bytes > MAX_BYTES {
            self.unread.dropped += u64::from(self.pop().is_some());
        }
    }

    /// Takes the oldest command.
    fn pop(&mut self) -> Option<Arc<FeedEvent>> {
        let event = self.unread.events.pop_front()?;
        self.waiting_bytes -= event.bytes;
        Some(event)
    }

    /// Takes the oldest commands, of about so many bytes.
    fn pop_part(&mut self, part_bytes: usize) -> VecDeque<Arc<FeedEvent>> {
        let rest_bytes = self.waiting_bytes.saturating_sub(part_bytes);
        let mut part = VecDeque::new();
        while self.waiting_bytes > rest_bytes {
            part.extend(self.pop());
        }
        part
    }

    fn note(&mut self, key: &[u8]) {
        let (keys, key) = (&mut self.unread.keys, &key[..key.len().min(SHOWN_BYTES)]);
        if keys.len() < MAX_KEYS {
            keys.insert(key.into());
        } else {
            self.unread.more_keys += u64::from(!keys.contains(key));
        }
    }
}

impl Feed {
    /// Adds a reader, which `session` wakes.
    pub fn join(&mut self, session: SessionId, filter: Filter, wants_page: bool) {
        self.readers.push(Reader { session, filter, wants_page, unread: Unread::default(), waiting_bytes: 0 });
    }

    /// Takes the oldest commands that wait for the reader of that session, of about `part_bytes`, and the names of keys
    /// if `takes_keys`; `None` if it is no reader.
    pub fn take(&mut self, session: SessionId, part_bytes: usize, takes_keys: bool) -> Option<Unread> {
        let reader = self.readers.iter_mut().find(|reader| reader.session == session)?;
        let events = reader.pop_part(part_bytes);
        let waiting = &mut reader.unread;
        let mut unread = Unread { events, dropped: take(&mut waiting.dropped), ..Unread::default() };
        unread.has_more = !waiting.events.is_empty();
        if takes_keys {
            (unread.keys, unread.more_keys) = (take(&mut waiting.keys), take(&mut waiting.more_keys));
        }
        Some(unread)
    }

    /// Adds a subscriber, or gives it another filter.
    pub(in crate::engine) fn listen(&mut self, session: SessionId, command: CommandId, filter: Filter) {
        self.stop_listening(session);
        self.subscribers.push(FeedSubscriber { session, command, filter, dropped: 0 });
    }

    /// The command by which a client listens; `None` if it does not.
    pub(in crate::engine) fn command_of(&self, session: SessionId) -> Option<CommandId> {
        self.subscribers.iter().find(|subscriber| subscriber.session == session).map(|subscriber| subscriber.command)
    }

    /// Removes a subscriber.
    pub(in crate::engine) fn stop_listening(&mut self, session: SessionId) {
        self.subscribers.retain(|subscriber| subscriber.session != session);
    }

    /// Takes the number of commands that were dropped for a subscriber.
    pub(in crate::engine) fn take_dropped(&mut self, session: SessionId) -> u64 {
        let subscriber = self.subscribers.iter_mut().find(|subscriber| subscriber.session == session);
        subscriber.map_or(0, |subscriber| take(&mut subscriber.dropped))
    }

    pub(in crate::engine) fn leave(&mut self, session: SessionId) {
        self.readers.retain(|reader| reader.session != session);
    }

    /// Whether commands are recorded for a reader or a subscriber.
    pub(in crate::engine) fn is_wanted(&self) -> bool {
        !self.readers.is_empty() || !self.subscribers.is_empty()
    }

    /// The client of a command that has begun.
    pub(in crate::engine) fn client_of(&self, number: u64) -> Option<u64> {
        self.open.get(&number).map(|entry| entry.client)
    }

    /// Begins a command; returns its number.
    pub(in crate::engine) fn begin(&mut self, entry: Entry) -> u64 {
        self.begun += 1;
        self.open.insert(self.begun, Entry { number: self.begun, ..entry });
        self.begun
    }

    /// Forgets a command that has not run, or runs later.
    pub(in crate::engine) fn forget(&mut self, number: u64) {
        self.open.remove(&number);
    }

    /// Ends a command of `client`, and counts it as dropped for subscribers that are slow; `None` if it was forgotten.
    pub(in crate::engine) fn end(
        &mut self,
        number: u64,
        elapsed_us: u64,
        reply: &[u8],
        client: &Session,
        table: &Table,
        is_slow: impl Fn(SessionId) -> bool,
    ) -> Option<Ended> {
        let mut entry = self.open.remove(&number)?;
        entry.elapsed_us = elapsed_us;
        // Filters look at the code of an error.
        entry.reply = Some(reply[..reply.len().min(FILTERED_BYTES)].to_vec());
        let is_of_page = client.origin.is_page;
        let is_wanted = |reader: &Reader| (reader.wants_page || !is_of_page) && reader.filter.admits(&entry, table);
        let wanted: Vec<&mut Reader> = self.readers.iter_mut().filter(|reader| is_wanted(reader)).collect();
        let mut woken = Vec::new();
        if !wanted.is_empty() {
            let event = Arc::new(FeedEvent::of(&entry, reply, client, table));
            for reader in wanted {
                woken.extend(reader.unread.events.is_empty().then_some(reader.session));
                reader.add(&event);
            }
        }
        let mut subscribers = Vec::new();
        for subscriber in
            self.subscribers.iter_mut().filter(|subscriber| !is_of_page && subscriber.filter.admits(&entry, table))
        {
            if is_slow(subscriber.session) {
                subscriber.dropped += 1;
            } else {
                subscribers.push(subscriber.session);
            }
        }
        if !subscribers.is_empty() {
            entry.reply = Some(reply.to_vec());
        }
        Some(Ended { entry, woken, subscribers })
    }

    /// Notes that a key has changed. Nobody is woken for that: readers look at keys from time to time.
    pub(in crate::engine) fn changed(&mut self, key: &[u8]) {
        self.readers.iter_mut().for_each(|reader| reader.note(key));
    }
}
