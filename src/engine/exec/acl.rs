//! Rights: the ACL gate, logging in, and the sessions of users that change.
//!
//! Only this module checks a user's rights. While no user is restricted the gate costs one branch.
//!
//! A session shares its user. When the user changes, all of its sessions continue with the new version; when it is
//! deleted, they are closed, and so are sessions subscribed to channels that the new version may not use.

use std::sync::Arc;

use crate::acl::{
    Access, AccessRequest, Context, Denial, Fault, LoggedDenial, Reason, User, Users, is_name, merged, parse,
};
use crate::engine::Engine;
use crate::engine::exec::client_line;
use crate::engine::spec::{AclError, Channels, CommandId, Error, Flags, KeyFlags, shown};
use crate::engine::state::{Effect, LogLevel, Session, SessionId, Topic};
use crate::resp::Request;

/// Refuses a request that the user of a session may not send. The caller has checked that at least one user is
/// restricted.
#[cold]
pub(super) fn pass_rights(
    engine: &mut Engine,
    session: SessionId,
    id: CommandId,
    request: Request<'_>,
) -> Result<(), Error> {
    let in_transaction = engine.sessions.get(session).is_some_and(|client| client.transaction.is_some());
    let context = if in_transaction { Context::Multi } else { Context::TopLevel };
    engine.sessions.set_last_command(session, Some(id));
    check_user(engine, session, id, request, context).map_err(|denial| refusal(engine, session, id, denial))
}

/// Refuses a queued request for which the user of a session has lost the right since.
pub(super) fn recheck_rights(
    engine: &mut Engine,
    session: SessionId,
    id: CommandId,
    request: Request<'_>,
) -> Result<(), Error> {
    if engine.acl.users.are_unrestricted() {
        return Ok(());
    }
    let reason = |denial| match denial {
        Denial::Command => "no permission to execute the command or subcommand",
        Denial::Key(_) => "no permission to touch the specified keys",
        Denial::Channel(_) => "no permission to access one of the channels used as arguments",
    };
    let checked = check_user(engine, session, id, request, Context::Multi);
    checked.map_err(|denial| AclError::Changed(reason(denial)).into())
}

/// Refuses a request of a script that the user of a session may not send.
pub(super) fn pass_rights_of_script(
    engine: &mut Engine,
    session: SessionId,
    id: CommandId,
    request: Request<'_>,
) -> Result<(), Error> {
    if engine.acl.users.are_unrestricted() {
        return Ok(());
    }
    let checked = check_user(engine, session, id, request, Context::Script);
    checked.map_err(|denial| {
        let text = refusal(engine, session, id, denial).to_string();
        AclError::InScript(text.trim_start_matches("NOPERM ").to_owned()).into()
    })
}

fn check_user(
    engine: &mut Engine,
    session: SessionId,
    id: CommandId,
    request: Request<'_>,
    context: Context,
) -> Result<(), Denial> {
    let Some(client) = engine.sessions.get_mut(session) else { return Ok(()) };
    let user = Arc::clone(&client.user);
    may_run(engine, &user, id, request).inspect_err(|denial| {
        let (reason, object) = match *denial {
            Denial::Command => (Reason::Command, engine.table.entry(id).name.as_bytes()),
            Denial::Key(place) => (Reason::Key, request.get(place).unwrap_or_default()),
            Denial::Channel(place) => (Reason::Channel, request.get(place).unwrap_or_default()),
        };
        let refusal = LoggedDenial { reason, context, object: object.to_vec(), user: user.name().to_vec() };
        log_refusal(engine, session, refusal);
    })
}

/// Checks whether a user may run a request of that command.
///
/// # Errors
/// The reason why it may not.
pub fn may_run(engine: &Engine, user: &User, id: CommandId, request: Request<'_>) -> Result<(), Denial> {
    if user.is_unrestricted() { Ok(()) } else { user.check_access(&access_request(engine, user, id, request)) }
}

fn access_request<'r>(engine: &Engine, user: &User, id: CommandId, request: Request<'r>) -> AccessRequest<'r> {
    let command = engine.table.entry(id).command;
    let words = |range: std::ops::Range<usize>, is_pattern| {
        let word = |place| (place, request.get(place).unwrap_or_default(), is_pattern);
        range.filter(|place| *place < request.len()).map(word).collect()
    };
    let mut access_request = AccessRequest {
        command: id.index(),
        is_free: command.flags.has(Flags::NO_AUTH),
        first_argument: request.get(1),
        keys: Vec::new(),
        channels: match command.channels {
            Channels::None => Vec::new(),
            Channels::First => words(1..2, false),
            Channels::All => words(1..request.len(), false),
            Channels::Patterns => words(1..request.len(), true),
        },
    };
    if user.checks_keys() {
        let keys = command.keys_of(request).into_iter();
        access_request.keys =
            keys.map(|(place, flags)| (place, request.get(place).unwrap_or_default(), access(flags))).collect();
    }
    access_request
}

/// Whether the user of a session may run a request, which names that command, and read any key beside.
pub(super) fn may_read_all_keys(engine: &Engine, session: SessionId, id: CommandId, request: Request<'_>) -> bool {
    if engine.acl.users.are_unrestricted() {
        return true;
    }
    let Some(client) = engine.sessions.get(session) else { return false };
    client.user.may_read_all_keys(&access_request(engine, &client.user, id, request))
}

/// Whether the user of a session may run a request, which names that command, and read a key beside.
pub(super) fn may_read(engine: &Engine, session: SessionId, id: CommandId, request: Request<'_>, key: &[u8]) -> bool {
    if engine.acl.users.are_unrestricted() {
        return true;
    }
    let Some(client) = engine.sessions.get(session) else { return false };
    let mut wanted = access_request(engine, &client.user, id, request);
    wanted.keys.push((0, key, Access { reads: true, writes: false }));
    client.user.check_access(&wanted).is_ok()
}

/// The error for the client of a denied request.
pub(super) fn refusal(engine: &Engine, session: SessionId, id: CommandId, denial: Denial) -> Error {
    let error = match denial {
        Denial::Command => AclError::Command {
            user: engine.sessions.get(session).map_or_else(String::new, |client| shown(client.user.name())),
            command: engine.table.entry(id).name.clone(),
        },
        Denial::Key(_) => AclError::Key,
        Denial::Channel(_) => AclError::Channel,
    };
    error.into()
}

/// Logs and counts a refusal, unless the page was refused what it asks by itself.
fn log_refusal(engine: &mut Engine, session: SessionId, refusal: LoggedDenial) {
    if engine.sessions.is_page(session) && refusal.reason != Reason::Auth {
        return;
    }
    let client =
        engine.sessions.get(session).map_or_else(Vec::new, |client| client_line::describe_client(engine, client, 0));
    log_refusal_of(engine, client, refusal);
}

fn log_refusal_of(engine: &mut Engine, client: Vec<u8>, refusal: LoggedDenial) {
    *engine.stats.denials_mut(refusal.reason) += 1;
    let (now_ms, most) = (engine.now().unix_ms(), engine.settings.access_log_entries);
    engine.acl.log.add(refusal, client, now_ms, most);
}

/// Logs a session in as a user. `word` is the command that does so.
///
/// # Errors
/// [`Error::WrongPassword`]: there is no such user, it may not log in, or the password is wrong.
pub fn log_in(engine: &mut Engine, session: SessionId, name: &[u8], password: &[u8], word: &[u8]) -> Result<(), Error> {
    let user = engine.acl.users.authenticated(name, password).map(Arc::clone);
    let Some(client) = engine.sessions.get_mut(session) else { return Ok(()) };
    if let Some(user) = user {
        client.first_user = client.first_user.take().filter(|first| first.name() == user.name());
        (client.user, client.authenticated) = (user, true);
        return Ok(());
    }
    let context = if client.transaction.is_some() { Context::Multi } else { Context::TopLevel };
    let refusal = LoggedDenial { reason: Reason::Auth, context, object: word.to_vec(), user: name.to_vec() };
    log_refusal(engine, session, refusal);
    Err(Error::WrongPassword)
}

/// The user of that name, if the password is right, for a caller without a session. A failure is logged for the command
/// `word`; `client` describes the caller, as a line of CLIENT LIST does.
pub fn authenticate(engine: &mut Engine, name: &[u8], password: &[u8], word: &[u8], client: &str) -> Option<Arc<User>> {
    let user = engine.acl.users.authenticated(name, password).map(Arc::clone);
    if user.is_none() {
        let (object, user) = (word.to_vec(), name.to_vec());
        let refusal = LoggedDenial { reason: Reason::Auth, context: Context::TopLevel, object, user };
        log_refusal_of(engine, client.as_bytes().to_vec(), refusal);
    }
    user
}

/// Logs a session out.
pub fn log_out(engine: &mut Engine, session: SessionId) {
    let users = &engine.acl.users;
    let (user, needs_no_login) = (Arc::clone(users.default_user()), !users.must_log_in());
    if let Some(client) = engine.sessions.get_mut(session) {
        (client.user, client.authenticated, client.first_user) = (user, needs_no_login, None);
    }
}

/// Sets the only password of the default user, or none if it is empty (`requirepass`).
pub fn set_default_password(engine: &mut Engine, password: &str) {
    let mut user = User::clone(engine.acl.users.default_user());
    let rule = if password.is_empty() { b"nopass".to_vec() } else { [b">", password.as_bytes()].concat() };
    for rule in [b"resetpass", rule.as_slice()] {
        user.take(rule, engine.settings.new_users_get_all_channels, &engine.table)
            .expect("every password is well formed");
    }
    replace_user(engine, user);
}

/// Creates the users that the settings or the file of users declare.
///
/// # Errors
/// The fault in the declarations, for the operator.
pub fn enlist_users(engine: &mut Engine) -> Result<(), String> {
    let declared = std::mem::take(&mut engine.settings.users);
    if !declared.is_empty() && !engine.settings.acl_file.is_empty() {
        return Err(TWO_PLACES.to_owned());
    }
    for (name, rules) in declared {
        enlist(engine, &name, &rules)?;
    }
    if !engine.settings.acl_file.is_empty() {
        load_users(engine, None).map_err(|faults| format!("Aborting Redis startup because of ACL errors: {faults}"))?;
    }
    Ok(())
}

fn enlist(engine: &mut Engine, name: &str, rules: &[String]) -> Result<(), String> {
    if !is_name(name.as_bytes()) {
        return Err("Spaces not allowed in ACL usernames".to_owned());
    }
    let all_channels = engine.settings.new_users_get_all_channels;
    let mut user = User::fresh(name.as_bytes(), all_channels);
    let rules: Vec<Vec<u8>> = rules.iter().map(|rule| rule.clone().into_bytes()).collect();
    for rule in merged(&rules).unwrap_or_default() {
        user.take(&rule, all_channels, &engine.table).map_err(|error| {
            format!("Error loading ACL rule '{}' for the user named '{name}': {error}", shown(&rule))
        })?;
    }
    if !user.is_on() {
        let line = format!(
            "The user '{name}' is disabled (there is no 'on' modifier in the user description). Make sure this is \
             not a configuration error."
        );
        engine.effects.push(Effect::Log(LogLevel::Notice, line));
    }
    replace_user(engine, user);
    Ok(())
}

/// Replaces all users by those of the ACL file (ACL LOAD).
///
/// # Errors
/// Why the file is refused; nothing changed.
pub fn load_users(engine: &mut Engine, caller: Option<SessionId>) -> Result<(), String> {
    let path = &engine.settings.acl_file;
    let unreadable = |reason| format!("Error loading ACLs, opening file '{path}': {reason}");
    let text = engine.host.read_users(path).map_err(unreadable)?;
    let users = parse(&text, path, engine.settings.new_users_get_all_channels, &engine.table)
        .map_err(|Fault(faults)| faults)?;
    replace_users(engine, caller, Arc::new(users));
    Ok(())
}

/// Writes all users into their file (ACL SAVE); false when that fails, which is logged.
pub fn save_users(engine: &mut Engine) -> bool {
    let path = &engine.settings.acl_file;
    let saved = engine.host.write_users(path, &engine.acl.users.text());
    if let Err(reason) = &saved {
        let line = format!("the users cannot be saved in '{path}': {reason}");
        engine.effects.push(Effect::Log(LogLevel::Warning, line));
    }
    saved.is_ok()
}

const TWO_PLACES: &str = "Configuring Redis with users defined in redis.conf and at the same setting an ACL file path \
                          is invalid. This setup is very likely to lead to configuration errors and security holes, \
                          please define either an ACL file or declare users directly in your redis.conf, but not both.";

/// Changes a user by rules, or creates it. `caller` is the session that requests it.
///
/// # Errors
/// A rule or the name is refused; nothing changed.
pub fn set_user(engine: &mut Engine, caller: Option<SessionId>, name: &[u8], words: &[Vec<u8>]) -> Result<(), Error> {
    if !is_name(name) {
        return Err(AclError::Name.into());
    }
    let rules = merged(words).map_err(|place| AclError::Unmatched(shown(&words[place])))?;
    let draft = engine.acl.users.with_rules(name, &rules, engine.settings.new_users_get_all_channels, &engine.table);
    let user = draft.map_err(|(place, reason)| AclError::Rule { rule: shown(&rules[place]), reason })?;
    let known = engine.acl.users.get(name).map(Arc::clone);
    let changed = replace_user(engine, user);
    if known.is_some_and(|known| !changed.covers_channels_of(&known)) {
        close_unentitled(engine, caller, &changed);
    }
    Ok(())
}

/// Replaces the user of that name, also in the sessions that act as it.
fn replace_user(engine: &mut Engine, user: User) -> Arc<User> {
    let user = Arc::make_mut(&mut engine.acl.users).put(user);
    for client in engine.sessions.iter_mut().filter(|client| client.user.name() == user.name()) {
        client.user = Arc::clone(&user);
    }
    user
}

/// Removes a user, and closes its sessions; false when there is none of that name.
pub fn remove_user(engine: &mut Engine, caller: Option<SessionId>, name: &[u8]) -> bool {
    if !Arc::make_mut(&mut engine.acl.users).remove(name) {
        return false;
    }
    expel(engine, caller, |client| client.user.name() == name);
    true
}

/// Replaces all users; sessions of users that no longer exist are closed.
pub fn replace_users(engine: &mut Engine, caller: Option<SessionId>, users: Arc<Users>) {
    let before = std::mem::replace(&mut engine.acl.users, users);
    let names: Vec<Vec<u8>> = before.iter().map(|user| user.name().to_vec()).collect();
    for (name, known) in names.iter().zip(before.iter()) {
        let Some(user) = engine.acl.users.get(name).map(Arc::clone) else {
            expel(engine, caller, |client| client.user.name() == name);
            continue;
        };
        for client in engine.sessions.iter_mut().filter(|client| client.user.name() == name) {
            client.user = Arc::clone(&user);
        }
        // Redis has changed the default user by then, and does not notice that it was a different one.
        let is_default = Arc::ptr_eq(&user, engine.acl.users.default_user());
        if !is_default && !user.covers_channels_of(known) {
            close_unentitled(engine, caller, &user);
        }
    }
}

/// Closes sessions of a user that are subscribed to channels which it may not use.
fn close_unentitled(engine: &mut Engine, caller: Option<SessionId>, user: &Arc<User>) {
    expel(engine, caller, |client| {
        let topics = [(Topic::Channel, false), (Topic::Pattern, true), (Topic::Shard, false)];
        let may_not = |(topic, is_pattern)| {
            let names = client.subscribed.names(topic);
            names.iter().any(|name| !user.may_subscribe(name, is_pattern))
        };
        client.user.name() == user.name() && topics.into_iter().any(may_not)
    });
}

/// Closes sessions, but not the link to the primary; the caller's own once it has its reply.
fn expel(engine: &mut Engine, caller: Option<SessionId>, is_meant: impl Fn(&Session) -> bool) {
    let default = Arc::clone(engine.acl.users.default_user());
    let mut expelled = Vec::new();
    for client in engine.sessions.iter_mut().filter(|client| !client.origin.is_primary && is_meant(client)) {
        (client.user, client.authenticated) = (Arc::clone(&default), false);
        if Some(client.id) == caller {
            client.closing = true;
        } else {
            expelled.push(client.id);
        }
    }
    expelled.into_iter().for_each(|session| engine.close_session_later(session));
}

/// The rights that these key flags require.
fn access(flags: KeyFlags) -> Access {
    let changes = [KeyFlags::INSERT, KeyFlags::DELETE, KeyFlags::UPDATE];
    Access { reads: flags.has(KeyFlags::ACCESS), writes: changes.into_iter().any(|change| flags.has(change)) }
}
