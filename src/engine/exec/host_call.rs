//! Host calls of the running command, and the session that moves between worlds.
//!
//! Worlds do not trust each other's logins: in most worlds every client may create users as it likes. A session
//! carries one proof of identity, the login that it had in the first world when it left that. A world that it enters
//! accepts the proof if it has a user of the same name with the same passwords. Otherwise the session is like a client
//! that has just connected: the default user, which has to log in if that needs a password. A login in between under
//! another name, and RESET, end the proof.
//!
//! Not here: how worlds are implemented and which clients are in them (`server/worlds`).

use std::sync::Arc;

use crate::acl::User;
use crate::engine::Engine;
use crate::engine::exec::Ctx;
use crate::engine::exec::ctx::Halt;
use crate::engine::spec::{CommandId, Error, KitError};
use crate::engine::state::{
    FIRST_WORLD, HostCall, HostReply, PendingHostCall, SessionId, SessionTransfer, Transport, WorldName,
};

impl Ctx<'_> {
    /// The result of a host call; `None` when the call is only made now: the handler then returns without a reply, and
    /// is called again with the result.
    ///
    /// # Errors
    /// The call failed, or the command runs within another, which cannot wait for the result.
    pub fn call_host(&mut self, call: HostCall) -> Result<Option<HostReply>, Error> {
        let is_nested = self.is_nested();
        let session = self.session_mut();
        match session.host_call.take().map(|pending| *pending) {
            // Another request, which was refused before it came to this point, may have left a result.
            Some(PendingHostCall::Answered(answered, answer)) if answered == call => match answer {
                HostReply::Refused(why) => Err(why.into()),
                answer => Ok(Some(answer)),
            },
            _ if is_nested => Err(KitError::WorldWithin.into()),
            _ => {
                session.host_call = Some(Box::new(PendingHostCall::Asked(call)));
                self.halt = Halt::CallsHost;
                Ok(None)
            }
        }
    }
}

impl Engine {
    /// Takes the pending host call of a session, if it has one.
    pub fn take_host_call(&mut self, session: SessionId) -> Option<HostCall> {
        match self.sessions.get_mut(session)?.host_call.take().map(|pending| *pending) {
            Some(PendingHostCall::Asked(call)) => Some(call),
            _ => None,
        }
    }

    /// Stores the result of a session's host call; its request is to be run again.
    pub fn answer_host_call(&mut self, session: SessionId, call: HostCall, answer: HostReply) {
        if let Some(client) = self.sessions.get_mut(session) {
            client.host_call = Some(Box::new(PendingHostCall::Answered(call, answer)));
        }
    }

    /// The state that a session takes into another world.
    pub fn export_session(&self, session: SessionId) -> Option<SessionTransfer> {
        let client = self.sessions.get(session)?;
        Some(SessionTransfer {
            origin: client.origin.clone(),
            protocol: client.protocol,
            database: client.database,
            first_user: first_user(self, session),
            name: client.name.clone(),
            library_name: client.library_name.clone(),
            library_version: client.library_version.clone(),
            reply_mode: client.reply_mode,
            skips_next: client.skips_next,
            no_evict: client.no_evict,
            no_touch: client.no_touch,
            rdb_request: client.rdb_request,
            buffers: client.buffers,
        })
    }

    /// Applies the state that a session brought along after it has connected here. It acts as the user that it was
    /// logged in as in the first world, if this world accepts that user; otherwise it has to log in if that is needed
    /// at all.
    pub fn import_session(&mut self, session: SessionId, transfer: SessionTransfer) {
        let (count, is_first) = (self.databases.count(), is_first_world(self));
        let user = transfer.first_user.as_deref().and_then(|user| accepted(self, user));
        let Some(client) = self.sessions.get_mut(session) else { return };
        // Direct calls of the program that embeds this server need no login.
        client.authenticated |= user.is_some() || client.origin.transport == Transport::Direct;
        if let Some(user) = user {
            client.user = user;
        }
        client.first_user = transfer.first_user.filter(|_| !is_first);
        client.protocol = transfer.protocol;
        client.database = if transfer.database < count { transfer.database } else { 0 };
        (client.name, client.library_name) = (transfer.name, transfer.library_name);
        client.library_version = transfer.library_version;
        (client.reply_mode, client.skips_next) = (transfer.reply_mode, transfer.skips_next);
        (client.no_evict, client.no_touch) = (transfer.no_evict, transfer.no_touch);
        (client.rdb_request, client.buffers) = (transfer.rdb_request, transfer.buffers);
    }
}

/// Whether a session has come into this world by DUNLIN WORLD, which is run here only for its reply: what this world
/// refuses to the client no longer concerns a request that is done. AUTH and HELLO, which move a client too, have yet
/// to log it in.
pub(super) fn has_entered_by(engine: &Engine, session: SessionId, command: CommandId) -> bool {
    let call = engine.sessions.get(session).and_then(|client| client.host_call.as_deref());
    let has_entered = matches!(call, Some(PendingHostCall::Answered(HostCall::Enter { .. }, HostReply::Done)));
    has_entered && engine.table.entry(command).name == "dunlin|world"
}

/// Drops the result of a host call that the request it was for has not taken, such as a HELLO whose login failed in the
/// world that it has moved to: no other request may pass for one that has moved.
pub(super) fn drop_answer(engine: &mut Engine, session: SessionId) {
    if let Some(client) = engine.sessions.get_mut(session)
        && matches!(client.host_call.as_deref(), Some(PendingHostCall::Answered(..)))
    {
        client.host_call = None;
    }
}

/// The user that a session is logged in as in the first world, or was when it left that.
pub fn first_user(engine: &Engine, session: SessionId) -> Option<Arc<User>> {
    let client = engine.sessions.get(session)?;
    if is_first_world(engine) {
        return client.authenticated.then(|| Arc::clone(&client.user));
    }
    client.first_user.clone()
}

fn is_first_world(engine: &Engine) -> bool {
    let name = engine.host.facts().name_of_world();
    let is_node = || WorldName::parse(name.as_bytes()).is_ok_and(|name| name.world_and_node().0.is_first());
    name == FIRST_WORLD || engine.settings.cluster.nodes() > 0 && is_node()
}

/// The user of this world that a client logged in as `user` elsewhere may act as: the one of the same name and
/// passwords, if there is one.
fn accepted(engine: &Engine, user: &User) -> Option<Arc<User>> {
    let own = engine.acl.users.get(user.name())?;
    own.accepts_login_of(user).then(|| Arc::clone(own))
}

/// Whether a client in another world, logged in here as `user` if at all, may see all data of this one.
pub fn shows_all_to(engine: &Engine, user: Option<&User>) -> bool {
    let users = &engine.acl.users;
    let user = match user {
        Some(user) => accepted(engine, user),
        None => Some(Arc::clone(users.default_user())).filter(|_| !users.must_log_in()),
    };
    user.is_some_and(|user| user.is_unrestricted())
}
