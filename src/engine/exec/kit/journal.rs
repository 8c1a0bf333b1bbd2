//! Recording commands in the journal: an entry is added when its command begins, and completed with its reply.
//!
//! So the commands of a script or a transaction follow the one that runs them, and a blocked one is listed before its
//! reply.

use crate::engine::Engine;
use crate::engine::exec::kit::strict;
use crate::engine::exec::measure;
use crate::engine::spec::{Error, REDACTED, ServerError};
use crate::engine::state::SessionId;
use crate::engine::state::kit::{Entry, Source};
use crate::engine::state::timing::Stopwatch;
use crate::resp::{Request, Requests};

/// Begins an entry, if commands are recorded; returns its number.
#[cold]
pub(super) fn begin_entry(
    engine: &mut Engine,
    session: SessionId,
    request: Request<'_>,
    source: Source,
) -> Option<u64> {
    engine.observers.kit.as_ref()?.journal.as_ref().filter(|journal| journal.is_on)?;
    let client = engine.sessions.get(session)?;
    let command = engine.table.resolve(request).ok().map(|(id, _)| id);
    let secrets = command.map(|id| engine.table.entry(id).command.secrets);
    let is_secret = |index: usize| secrets.is_some_and(|secrets| secrets.hide(request, index));
    let word = |(index, word)| if is_secret(index) { REDACTED } else { word };
    let entry = Entry {
        number: 0,
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
    Some(engine.observers.kit.as_mut()?.journal.as_mut()?.add(entry))
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
) -> Result<Option<(u64, Stopwatch)>, Error> {
    if engine.observers.kit.is_none() || engine.sessions.is_test_client(session) {
        return Ok(None);
    }
    if let Some(line) = strict::check_within(engine, session, request, source) {
        return Err(ServerError::Injected(line).into());
    }
    Ok(begin_entry(engine, session, request, source).map(|number| (number, measure::start_timer(engine))))
}

/// Records the reply of an entry's command.
pub(in crate::engine) fn end_entry(engine: &mut Engine, number: Option<u64>, timer: Stopwatch, reply: &[u8]) {
    let elapsed_us = measure::elapsed_us(engine, timer);
    let journal = engine.observers.kit.as_mut().and_then(|kit| kit.journal.as_mut());
    let (Some(number), Some(journal)) = (number, journal) else { return };
    let begun = journal.begun;
    if let Some(entry) = journal.get_mut(number) {
        entry.reply = Some(reply.to_vec());
        entry.elapsed_us = elapsed_us;
        entry.waited = entry.waited.map(|_| begun);
    }
}
