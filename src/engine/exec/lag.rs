//! The lag with which a replica applies the stream of its primary, as a test sets it, and the writes that it loses by
//! it.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::exec::replication::STREAM_LIMITS;
use crate::engine::exec::{messages, replication};
use crate::engine::spec::{Error, ServerError, says};
use crate::engine::state::replication::Lag;
use crate::resp::Parser;

/// Sets how far this replica lags behind the stream of its primary. Parts that are queued already become due as if they
/// arrived now.
pub fn set_lag(engine: &mut Engine, lag: Lag) {
    let due = lag.due(engine.timing.now);
    let before = std::mem::replace(&mut replication::replication(engine).lag, lag);
    if let Some(link) = replication::link(engine) {
        let waiting = std::mem::take(&mut link.queue);
        let parts = waiting.into_iter().flat_map(|(moment, part)| {
            let parts = if lag.held_back() > 0 { writes(&part) } else { vec![part] };
            // What was held back had no moment at which it would be applied.
            let moment = if before.held_back() > 0 { due } else { due.min(moment) };
            parts.into_iter().map(move |part| (moment, part))
        });
        link.queue = parts.collect();
    }
    replication::apply_due(engine);
}

/// Applies all that the primary has sent but its last writes, as many as that, as this replica is to lose them.
///
/// # Errors
/// It has applied some of them, or does not have the data of its primary yet; nothing has changed then.
pub(super) fn leave_out(engine: &mut Engine, count: usize) -> Result<(), Error> {
    let link = replication::link(engine).filter(|link| link.is_up());
    let Some(primary) = link.map(|link| link.primary) else {
        return Err(ServerError::Kit("it is not connected to its primary".to_owned()).into());
    };
    let in_flight = engine.peers.in_flight.iter().flat_map(|in_flight| in_flight.stream_of(primary));
    let sent: Vec<Arc<[u8]>> = in_flight.cloned().collect();
    let Some(replication) = &mut engine.peers.replication else { return Ok(()) };
    let (lag, queue) = (replication.lag, replication.link.iter().flat_map(|link| &link.queue));
    let behind: usize = queue.map(|(_, part)| part).chain(&sent).map(|part| writes(part).len()).sum();
    if behind < count {
        return Err(ServerError::Kit(format!("it is {behind} writes behind its primary, not {count}")).into());
    }
    set_lag(engine, Lag::Writes(count));
    messages::hasten_stream(engine, primary);
    if let Some(replication) = &mut engine.peers.replication {
        replication.lag = lag;
    }
    Ok(())
}

/// The writes of a part of the stream, one by one: commands, or whole transactions.
pub(super) fn writes(bytes: &[u8]) -> Vec<Arc<[u8]>> {
    let (mut writes, mut parser, mut is_within) = (Vec::new(), Parser::new(), false);
    let (mut start, mut end) = (0, 0);
    while let Ok(Some(request)) = parser.next(&bytes[end..], &STREAM_LIMITS) {
        let name = request.get(0).unwrap_or_default();
        is_within = (is_within || says(name, "MULTI")) && !says(name, "EXEC");
        let is_whole = !is_within && !says(name, "SELECT");
        end += parser.consumed();
        if is_whole {
            writes.push(bytes[start..end].into());
            start = end;
        }
    }
    writes
}
