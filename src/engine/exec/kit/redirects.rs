//! Finding redirects that a client does not follow, for the rule `moved-unhandled` of strict mode: the nodes of a
//! cluster report to each other which commands have come ([`crate::engine::state::kit::strict::redirects`]).

use crate::engine::Engine;
use crate::engine::cluster::{Message, NodeId};
use crate::engine::exec::cluster;
use crate::engine::exec::gates::GateRequest;
use crate::engine::exec::kit::strict;
use crate::engine::spec::ClusterError;
use crate::engine::state::kit::strict::redirects::{Redirect, digest};
use crate::engine::state::kit::{Finding, Level, Rule, Strict};
use crate::resp::Request;

/// Remembers a command that is answered with a redirect, and has the other nodes watch for it.
#[cold]
pub(in crate::engine::exec) fn note(engine: &mut Engine, asked: &GateRequest<'_>, error: &ClusterError) {
    if !matches!(error, ClusterError::Moved { .. } | ClusterError::Ask { .. }) {
        return;
    }
    let command = strict::shown_command(engine.table.entry(asked.id).command, asked.request);
    let Some(client) =
        engine.sessions.get(asked.session).filter(|client| !client.origin.is_page && !client.origin.is_test_client)
    else {
        return;
    };
    let client_name = client.name.clone();
    let Some(strict) = engine.observers.kit.as_mut().and_then(|kit| kit.strict.as_mut()) else { return };
    if strict.setting(Rule::MovedUnhandled).level == Level::Off {
        return;
    }
    let number = strict.redirects.next_number();
    let (client, reply) = (asked.session.number, error.to_string());
    strict.redirects.add(Redirect { number, client, client_name, command, reply });
    let oldest = strict.redirects.oldest().unwrap_or(number);
    send(engine, |from| Message::Redirected { from, number, digest: digest(asked.request), oldest });
}

/// Watches for a command that another node has redirected.
pub fn expect(engine: &mut Engine, from: NodeId, number: u64, digest: u64, oldest: u64) {
    engine.observers.kit().expected.add(digest, from, number, oldest);
}

/// Tells the node that has redirected this command, if one has, that it has come.
pub(super) fn arrive(engine: &mut Engine, request: Request<'_>) {
    let Some(kit) = engine.observers.kit.as_mut().filter(|kit| !kit.expected.is_empty()) else { return };
    if let Some((from, number)) = kit.expected.take(request) {
        send(engine, |_| Message::Followed { from, number });
    }
}

/// Forgets a command that a node has redirected, as it has come to another one.
pub fn forget(engine: &mut Engine, from: NodeId, number: u64) {
    let is_own = cluster::is_myself(engine, from);
    let Some(kit) = &mut engine.observers.kit else { return };
    kit.expected.remove(from, number);
    if let Some(strict) = kit.strict.as_mut().filter(|_| is_own) {
        strict.redirects.remove(number);
    }
    engine.observers.put_kit_away();
}

fn send(engine: &mut Engine, message: impl FnOnce(NodeId) -> Message) {
    let from = cluster::own_id(engine);
    cluster::send(engine, from.map(message));
}

/// The findings, as of a time, about redirected commands that no other node has got.
pub(super) fn unhandled(strict: &Strict, time_ms: i64) -> impl Iterator<Item = Finding> {
    let level = strict.setting(Rule::MovedUnhandled).level;
    strict.redirects.waiting().filter(move |_| level > Level::Off).map(move |redirect| Finding {
        rule: Rule::MovedUnhandled,
        level,
        time_ms,
        client: redirect.client,
        client_name: redirect.client_name.clone(),
        command: redirect.command.clone(),
        text: format!(
            "the reply was {}, and the command has come to no other node; use a client for clusters, which follows it",
            redirect.reply
        ),
        times: 1,
    })
}
