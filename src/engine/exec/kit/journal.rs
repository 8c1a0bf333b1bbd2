//! Recording commands in the journal, and for the feed: an entry is added when its command begins, and
//! completed with its reply.
//!
//! So the commands of a script or a transaction follow the one that runs them, and a blocked one is listed before its
//! reply.

use crate::engine::Engine;
use crate::engine::exec::kit::{feed, strict};
use crate::engine::exec::timing;
use crate::engine::spec::{Error, REDACTED, ServerError};
use crate::engine::state::SessionId;
use crate::engine::state::kit::{Entry, Recorded, Source};
use crate::engine::state::timing::Stopwatch;
use crate::resp::{Request, Requests};

/// Begins an entry where commands are recorded.
#[cold]
pub(super) fn begin_entry(engine: &mut Engine, session: SessionId, request: Request<'_>, source: Source) -> Recorded {
    let Some(kit) = &mut engine.observers.kit else { return Recorded::default() };
    let Some(client) = engine.sessions.get(session) else { return Recorded::default() };
    // The page looks at what the application does, so what it does itself is only in the feed of those who ask for it.
    let keeps = !client.origin.is_page && kit.journal.as_ref().is_some_and(|journal| journal.is_on);
    let is_wanted = kit.feed.is_wanted();
    if !keeps && !is_wanted {
        return Recorded::default();
    }
    let command = engine.table.resolve(request).ok().map(|(id, _)| id);
    let secrets = command.map(|id| engine.table.entry(id).command.secrets);
    let is_secret = |index: usize| secrets.is_some_and(|secrets| secrets.hide(request, index));
    let word = |(index, word)| if is_secret(index) { REDACTED } else { word };
    let entry = Entry {
        number: 0,
        node: None,
        order: engine.host.next_order(),
        moment: engine.timing.now,
        client: session.number,
        client_name: client.name.clone(),
        database: client.database,
        source,
        elapsed_us: 0,
        request: Requests::of(request.iter().enumerate().map(word)),
        protocol: client.protocol,
        reply: None,
        waited: None,
        has_secrets: (0..request.len()).any(is_secret),
        command,
    };
    if !keeps {
        return Recorded { feed: Some(kit.feed.begin(entry)), journal: None };
    }
    let feed = is_wanted.then(|| kit.feed.begin(entry.clone()));
    Recorded { feed, journal: kit.journal.as_mut().map(|journal| journal.add(entry, &engine.table)) }
}

/// Checks a command that runs within another one by the rules of strict mode, and begins its entry.
///
/// # Errors
/// A rule of strict mode refuses it.
#[inline]
pub(in crate::engine) fn begin_inner(
    engine: &mut Engine,
    session: SessionId,
    request: Request<'_>,
    source: Source,
) -> Result<Option<(Recorded, Stopwatch)>, Error> {
    if engine.observers.kit.is_none() || engine.sessions.is_test_client(session) {
        return Ok(None);
    }
    if let Some(line) = strict::check_within(engine, session, request, source) {
        return Err(ServerError::Injected(line).into());
    }
    let recorded = begin_entry(engine, session, request, source);
    Ok(recorded.is_anywhere().then(|| (recorded, timing::start_timer(engine))))
}

/// Records the reply of a command.
pub(in crate::engine) fn end_entry(engine: &mut Engine, recorded: Recorded, timer: Stopwatch, reply: &[u8]) {
    let elapsed_us = timing::elapsed_us(engine, timer);
    let Some(kit) = &mut engine.observers.kit else { return };
    if let (Some(number), Some(journal)) = (recorded.journal, &mut kit.journal) {
        let begun = journal.begun;
        journal.change(number, &engine.table, |entry| {
            entry.reply = Some(reply.to_vec());
            entry.elapsed_us = elapsed_us;
            entry.waited = entry.waited.map(|_| begun);
        });
    }
    if let Some(number) = recorded.feed {
        let client = kit.feed.client_of(number).and_then(|client| engine.sessions.find(client));
        let Some(client) = client.and_then(|client| engine.sessions.get(client)) else {
            return kit.feed.forget(number);
        };
        let is_slow = |listener| feed::is_slow(&engine.sessions, listener);
        if let Some(ended) = kit.feed.end(number, elapsed_us, reply, client, &engine.table, is_slow) {
            feed::publish(engine, &ended);
        }
    }
}
