//! Host calls: requests of a command to the engine's host that cannot be answered while the engine is locked, such as
//! entering another world or listing all of them.
//!
//! A world is an engine of its own, and no thread holds the locks of two engines. So the command calls its host
//! ([`Ctx::call_host`]) and returns; its connection unlocks the engine, waits for the result, and runs the same
//! request again, in whichever world the session is by then. So a command that enters another world replies there, by
//! the same code as anywhere.
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
use crate::engine::ctx::Halt;
use crate::engine::{Ctx, Engine, Error, KitError, Origin, ReplyMode, SessionId, Transport};
use crate::resp::Protocol;

/// The name of the world that a server starts with.
pub const FIRST_WORLD: &str = "default";

/// The longest name of a world, in bytes.
const LONGEST_NAME: usize = 64;

/// The name of a world: 1 to 64 letters, digits, `-`, `_` or `.`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorldName(Box<str>);

impl WorldName {
    /// The name that a client wrote.
    ///
    /// # Errors
    /// The text is not a valid name.
    pub fn parse(word: &[u8]) -> Result<WorldName, KitError> {
        let is_fit = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        let name = std::str::from_utf8(word).ok().filter(|name| (1..=LONGEST_NAME).contains(&name.len()));
        let name = name.filter(|name| name.as_bytes().iter().all(is_fit)).ok_or(KitError::WorldName)?;
        Ok(WorldName(name.into()))
    }

    /// The name of the world that a server starts with.
    pub fn first() -> WorldName {
        WorldName(FIRST_WORLD.into())
    }

    /// Whether it is the name of the world that a server starts with.
    pub fn is_first(&self) -> bool {
        &*self.0 == FIRST_WORLD
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A call of a command to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostCall {
    /// Enter that world, which is created if it does not exist.
    Enter {
        /// The name of the world.
        world: WorldName,
        /// Whether a new world ends when its last client leaves.
        is_temporary: bool,
    },
    /// List all worlds.
    Worlds,
    /// End that world.
    DropWorld(WorldName),
    /// Return the data of that world as text.
    Dump(WorldName),
}

/// The result of a host call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostReply {
    /// The call succeeded.
    Done,
    /// The state of all worlds, by name.
    Worlds(Vec<WorldFigures>),
    /// The data of a world as text.
    Text(String),
    /// The call failed.
    Refused(KitError),
}

/// The state of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldFigures {
    /// The name of the world.
    pub name: WorldName,
    /// The number of clients in it.
    pub clients: usize,
    /// The number of keys in it.
    pub keys: usize,
    /// It ends when its last client leaves.
    pub is_temporary: bool,
}

/// The host call of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PendingHostCall {
    /// It waits for its result.
    Asked(HostCall),
    /// It has its result, and the request that made it is to be run again.
    Answered(HostCall, HostReply),
}

/// The state that a session keeps when it enters another world: what the client has set about itself.
#[derive(Debug)]
pub struct SessionTransfer {
    origin: Origin,
    protocol: Protocol,
    database: usize,
    first_user: Option<Arc<User>>,
    name: Vec<u8>,
    library_name: Vec<u8>,
    library_version: Vec<u8>,
    reply_mode: ReplyMode,
    skips_next: bool,
    no_evict: bool,
    no_touch: bool,
    buffers: super::Buffers,
}

impl SessionTransfer {
    /// Where the session comes from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }
}

impl Ctx<'_> {
    /// The result of a host call; `None` when the call is only made now: the handler then returns without a reply, and
    /// is called again with the result.
    ///
    /// # Errors
    /// The call failed, or the command runs within another, which cannot wait for the result.
    pub fn call_host(&mut self, ask: HostCall) -> Result<Option<HostReply>, Error> {
        let is_nested = self.is_nested();
        let session = self.session_mut();
        match session.host_call.take().map(|question| *question) {
            // Another request, which was refused before it came to this point, may have left a result.
            Some(PendingHostCall::Answered(asked, answer)) if asked == ask => match answer {
                HostReply::Refused(why) => Err(why.into()),
                answer => Ok(Some(answer)),
            },
            _ if is_nested => Err(KitError::WorldWithin.into()),
            _ => {
                session.host_call = Some(Box::new(PendingHostCall::Asked(ask)));
                self.halt = Halt::CallsHost;
                Ok(None)
            }
        }
    }
}

impl Engine {
    /// Takes the pending host call of a session, if it has one.
    pub fn take_host_call(&mut self, session: SessionId) -> Option<HostCall> {
        match self.sessions.get_mut(session)?.host_call.take().map(|question| *question) {
            Some(PendingHostCall::Asked(ask)) => Some(ask),
            _ => None,
        }
    }

    /// Stores the result of a session's host call; its request is to be run again.
    pub fn answer_host_call(&mut self, session: SessionId, asked: HostCall, answer: HostReply) {
        if let Some(client) = self.sessions.get_mut(session) {
            client.host_call = Some(Box::new(PendingHostCall::Answered(asked, answer)));
        }
    }

    /// The state that a session takes into another world.
    pub fn export_session(&self, session: SessionId) -> Option<SessionTransfer> {
        let client = self.sessions.get(session)?;
        Some(SessionTransfer {
            origin: client.origin.clone(),
            protocol: client.protocol,
            database: client.database,
            first_user: self.first_user(session),
            name: client.name.clone(),
            library_name: client.library_name.clone(),
            library_version: client.library_version.clone(),
            reply_mode: client.reply_mode,
            skips_next: client.skips_next,
            no_evict: client.no_evict,
            no_touch: client.no_touch,
            buffers: client.buffers,
        })
    }

    /// The user that a session is logged in as in the first world, or was when it left that.
    pub fn first_user(&self, session: SessionId) -> Option<Arc<User>> {
        let client = self.sessions.get(session)?;
        if self.is_first_world() {
            return client.authenticated.then(|| Arc::clone(&client.user));
        }
        client.first_user.clone()
    }

    /// Gives a session that has just connected what it brought along. It acts as whom it was logged in in the first
    /// world, where the users of this one have no objection; otherwise it has to log in if that is needed at all.
    pub fn import_session(&mut self, session: SessionId, transfer: SessionTransfer) {
        let (count, is_first) = (self.databases.count(), self.is_first_world());
        let user = transfer.first_user.as_deref().and_then(|user| self.accepted(user));
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
        client.buffers = transfer.buffers;
    }

    fn is_first_world(&self) -> bool {
        self.host.facts().name_of_world() == FIRST_WORLD
    }

    /// The user of this world who somebody is that has logged in elsewhere, as `user`.
    fn accepted(&self, user: &User) -> Option<Arc<User>> {
        let own = self.acl.users.get(user.name())?;
        own.accepts_login_of(user).then(|| Arc::clone(own))
    }

    /// Whether a client in another world, logged in here as `user` if at all, may see all data of this one.
    pub fn shows_all_to(&self, user: Option<&User>) -> bool {
        let users = &self.acl.users;
        let user = match user {
            Some(user) => self.accepted(user),
            None => Some(Arc::clone(users.default_user())).filter(|_| !users.must_log_in()),
        };
        user.is_some_and(|user| user.is_unrestricted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_has_a_short_and_plain_name() {
        for name in ["a", "Cart-17_b.c", &"x".repeat(64)] {
            assert_eq!(WorldName::parse(name.as_bytes()).map(|name| name.as_str().to_owned()), Ok(name.to_owned()));
        }
        for name in ["", "a b", "a/b", "a:b", "ä", &"x".repeat(65)] {
            assert_eq!(WorldName::parse(name.as_bytes()), Err(KitError::WorldName), "{name}");
        }
        assert_eq!(WorldName::parse(b"\xff"), Err(KitError::WorldName));
    }
}
