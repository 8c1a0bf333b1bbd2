//! CONFIG: reads and changes the settings at run time.
//!
//! The parameters are defined in [`crate::config`]; this file handles their names in the command. CONFIG SET applies
//! all its changes or none: it works on a copy of the settings, which replaces the old ones at the end. Changes that
//! the server must act on are sent as [`Effect::Setting`].

use super::help;
use crate::config::{self, Added, Assigned, Mutability, Parameter};
use crate::engine::exec::operations;
use crate::engine::{
    Args, Arity, Change, Command, Ctx, Effect, Engine, Error, Family, Flags, LogLevel, Secrets, ServerError, Settings,
    shown,
};
use crate::value::glob::Pattern;

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[CONFIG];

const CONFIG: Command = Command {
    name: "CONFIG",
    family: Family::Server,
    arity: Arity::AtLeast(2),
    since: "2.0.0",
    cost: "Depends on subcommand.",
    about: "A container for commands about the server's settings.",
    subcommands: &[GET, SET, RESETSTAT, REWRITE, help::row(Family::Server, "5.0.0")],
    ..Command::ROW
};

const ADMIN: Flags = Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::LOADING).and(Flags::STALE);
const ON_ALL_NODES: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];

const GET: Command = Command {
    name: "GET",
    syntax: "parameter [parameter ...]",
    family: Family::Server,
    arity: Arity::AtLeast(3),
    flags: ADMIN,
    since: "2.0.0",
    history: &[Change::says("7.0.0", "Takes several patterns.")],
    cost: "O(N) when N is the number of configuration parameters provided",
    about: "Returns the parameters whose names match a pattern, with their values.",
    run: get,
    ..Command::ROW
};

fn get(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let mut found: Vec<(Vec<u8>, &Parameter)> = Vec::new();
    for pattern in args.rest() {
        if pattern.iter().any(|byte| b"[*?".contains(byte)) {
            collect_matching(pattern, &mut found);
        } else if let Some((parameter, _)) = find(pattern) {
            collect(pattern, parameter, &mut found);
        }
    }
    let values: Vec<String> = found.iter().map(|(_, parameter)| parameter.shown(cx.settings())).collect();
    let reply = cx.reply();
    reply.map(found.len());
    for ((name, _), value) in found.iter().zip(values) {
        reply.bulk(name);
        reply.bulk(value.as_bytes());
    }
    Ok(())
}

fn collect_matching(pattern: &[u8], found: &mut Vec<(Vec<u8>, &'static Parameter)>) {
    let pattern = Pattern::new(pattern, true);
    for parameter in config::parameters().filter(|parameter| !parameter.is_hidden) {
        for name in parameter.names().filter(|name| pattern.matches(name.as_bytes())) {
            collect(name.as_bytes(), parameter, found);
        }
    }
}

/// Adds a parameter under a name unless the name is already present. A requested name keeps its spelling.
fn collect(name: &[u8], parameter: &'static Parameter, found: &mut Vec<(Vec<u8>, &'static Parameter)>) {
    if !found.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
        found.push((name.to_vec(), parameter));
    }
}

fn find(name: &[u8]) -> Option<(&'static Parameter, &'static str)> {
    config::find(std::str::from_utf8(name).ok()?)
}

const SET: Command = Command {
    name: "SET",
    syntax: "parameter value [parameter value ...]",
    family: Family::Server,
    arity: Arity::AtLeast(4),
    flags: ADMIN,
    since: "2.0.0",
    history: &[Change::says("7.0.0", "Takes several parameters, and sets all or none.")],
    cost: "O(N) when N is the number of configuration parameters provided",
    about: "Sets parameters, all of them or none.",
    tips: ON_ALL_NODES,
    secrets: Secrets::ValuesOf(&[
        "requirepass",
        "masterauth",
        "masteruser",
        "tls-key-file-pass",
        "tls-client-key-file-pass",
    ]),
    run: set,
    ..Command::ROW
};

/// A parameter with its name as the row spells it, and its new value.
type Assignment<'a> = (&'static Parameter, &'static str, &'a [u8]);

fn set(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let may_protected = cx.settings().protected_configs.admits(cx.session());
    let assignments = assignments(&mut args, may_protected)?;
    if cx.engine().persistence.loading.is_some() && assignments.iter().any(|(_, name, _)| *name == "dir") {
        return Err(ServerError::Loading.into());
    }
    let mut settings = cx.settings().clone();
    // Malformed values are reported first, as in Redis, wherever they are in the request.
    let mut unsupported = None;
    for (parameter, name, value) in &assignments {
        match parameter.assign_bytes(&mut settings, value).map_err(|reason| refused(name, &reason))? {
            Assigned::InForce => {}
            Assigned::Differs { actual, .. } => {
                unsupported.get_or_insert_with(|| refused(name, &parameter.refusal(actual)));
            }
        }
    }
    unsupported.map_or(Ok(()), Err)?;
    let engine = cx.engine();
    enter_directory(engine, &mut settings)?;
    make_room(engine, &settings)?;
    set_oom_score(engine, &settings, &assignments)?;
    if let Err(refusal) = listen(engine, &settings, &assignments) {
        restore_process(engine, &engine.settings);
        return Err(refusal);
    }
    let before = operations::replace_settings(cx, settings);
    if cx.settings().files.appends != before.files.appends && operations::switch_aof(cx).is_err() {
        let failed = operations::replace_settings(cx, before);
        restore_process(cx.engine(), &failed);
        return Err(refused("appendonly", "Unable to turn on AOF. Check server logs."));
    }
    for (parameter, _, _) in assignments {
        cx.effects().push(Effect::Setting(parameter.name));
    }
    cx.reply().ok();
    Ok(())
}

/// Finds another working directory (`dir`), or refuses the change.
fn enter_directory(engine: &Engine, settings: &mut Settings) -> Result<(), Error> {
    if settings.directory != engine.settings.directory {
        let found = engine.host.find_directory(&settings.directory);
        settings.directory = found.map_err(|reason| refused("dir", &reason))?;
    }
    Ok(())
}

/// Raises the system's descriptor limit for more clients, or refuses the change.
fn make_room(engine: &Engine, settings: &Settings) -> Result<(), Error> {
    let wanted = settings.max_clients;
    let room = if wanted > engine.settings.max_clients { engine.host.make_room_for(wanted) } else { wanted };
    if room < wanted {
        let reason =
            format!("The operating system is not able to handle the specified number of clients, try with {room}");
        return Err(refused("maxclients", &reason));
    }
    Ok(())
}

/// Sets the process's OOM score if one of its settings is named.
fn set_oom_score(engine: &Engine, settings: &Settings, assignments: &[Assignment<'_>]) -> Result<(), Error> {
    const NAMES: [&str; 2] = ["oom-score-adj", "oom-score-adj-values"];
    match assignments.iter().find(|(_, name, _)| NAMES.contains(name)) {
        Some((_, name, _)) if !engine.host.set_oom_score(&settings.process) => {
            Err(refused(name, "Failed to set current oom_score_adj. Check server logs."))
        }
        _ => Ok(()),
    }
}

/// Rebinds the listeners if the port or the addresses change.
fn listen(engine: &Engine, settings: &Settings, assignments: &[Assignment<'_>]) -> Result<(), Error> {
    let before = &engine.settings;
    let refusal = assignments.iter().find_map(|(_, name, _)| match *name {
        "port" if before.port != settings.port => Some((name, "Unable to listen on this port. Check server logs.")),
        "bind" if before.bind != settings.bind => Some((name, "Failed to bind to specified addresses.")),
        _ => None,
    });
    match refusal {
        Some((name, reason)) if !engine.host.listen(before, settings) => Err(refused(name, reason)),
        _ => Ok(()),
    }
}

/// Puts the settings in force, which were valid a moment ago, back in place of those that have failed.
fn restore_process(engine: &Engine, failed: &Settings) {
    let settings = &engine.settings;
    if (failed.port, &failed.bind) != (settings.port, &settings.bind) {
        engine.host.listen(failed, settings);
    }
    engine.host.set_oom_score(&settings.process);
}

fn refused(name: &str, reason: &str) -> Error {
    Error::ConfigRefused { name: name.to_owned(), reason: reason.to_owned() }
}

/// Finds every named parameter before any value is checked.
fn assignments<'a>(args: &mut Args<'a>, may_protected: bool) -> Result<Vec<Assignment<'a>>, Error> {
    if !args.left().is_multiple_of(2) {
        return Err(Error::Syntax);
    }
    let mut assignments: Vec<Assignment<'a>> = Vec::new();
    while !args.is_empty() {
        let (given, value) = (args.word()?, args.word()?);
        let (parameter, name) = find(given).ok_or_else(|| Error::ConfigUnknown(shown(given)))?;
        let refused = |reason| refused(&shown(given), reason);
        match parameter.mutability {
            Mutability::Protected if !may_protected => return Err(refused("can't set protected config")),
            Mutability::AtStart => return Err(refused("can't set immutable config")),
            Mutability::Protected | Mutability::Anytime => {}
        }
        if assignments.iter().any(|(_, known, _)| *known == name) {
            return Err(refused("duplicate parameter"));
        }
        assignments.push((parameter, name, value));
    }
    Ok(assignments)
}

const REWRITE: Command = Command {
    name: "REWRITE",
    family: Family::Server,
    arity: Arity::Exactly(2),
    flags: ADMIN,
    since: "2.8.0",
    about: "Writes the current parameters to the configuration file, keeping its comments and order.",
    tips: ON_ALL_NODES,
    run: |cx, _| rewrite(cx, Added::Changed),
    ..Command::ROW
};

/// Brings the configuration file up to date; with `all`, every parameter gets a line.
pub(super) fn rewrite(cx: &mut Ctx<'_>, added: Added) -> Result<(), Error> {
    let engine = cx.engine();
    if engine.host.facts().config_file.is_empty() {
        return Err(ServerError::NoConfigFile.into());
    }
    let mut settings = engine.settings.clone();
    settings.port = engine.host.facts().port_in_config_file.unwrap_or(settings.port);
    let old = engine.host.read_config().map_err(ServerError::ConfigNotWritten)?;
    let users = engine.acl.users.iter().map(|user| user.line());
    let users = settings.acl_file.is_empty().then(|| users.collect());
    let text = config::rewritten(&old, &settings, users, added);
    engine.host.write_config(&text).map_err(ServerError::ConfigNotWritten)?;
    let line = "CONFIG REWRITE executed with success.".to_owned();
    cx.effects().push(Effect::Log(LogLevel::Notice, line));
    cx.reply().ok();
    Ok(())
}

const RESETSTAT: Command = Command {
    name: "RESETSTAT",
    family: Family::Server,
    arity: Arity::Exactly(2),
    flags: ADMIN,
    since: "2.0.0",
    about: "Resets the counters of INFO.",
    tips: ON_ALL_NODES,
    run: reset_statistics,
    ..Command::ROW
};

fn reset_statistics(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    operations::reset_statistics(cx);
    cx.reply().ok();
    Ok(())
}
