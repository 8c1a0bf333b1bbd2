//! ACL: users, their permissions, and the log of denials.
//!
//! The rules themselves are in [`crate::acl`], and the engine enforces them. Names, rules and other arguments that may
//! contain a secret are hidden from MONITOR and the logs.

mod introspect;
mod users;

use super::help;
use crate::engine::{Args, Arity, Change, Command, Ctx, Error, Family, Flags, Secrets};

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[ACL];

const ACL: Command = Command {
    name: "ACL",
    family: Family::Server,
    arity: Arity::AtLeast(2),
    since: "6.0.0",
    cost: "Depends on subcommand.",
    about: "A container for commands about users and their permissions.",
    subcommands: &[CAT, DELUSER, DRYRUN, GENPASS, GETUSER, LIST, LOAD, LOG, SAVE, SETUSER, USERS, WHOAMI, HELP],
    ..Command::ROW
};

/// Fields shared by the rows of subcommands that every user may call.
const FOR_ALL: Command = Command {
    family: Family::Server,
    arity: Arity::AtLeast(2),
    flags: Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE),
    since: "6.0.0",
    ..Command::ROW
};

/// Fields shared by the rows of subcommands for administrators.
const FOR_ADMINISTRATORS: Command =
    Command { flags: Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::LOADING).and(Flags::STALE), ..FOR_ALL };

const ON_ALL_NODES: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];

const CAT: Command = Command {
    name: "CAT",
    syntax: "[category]",
    cost: "O(1) since the categories and commands are a fixed set.",
    about: "Lists the categories of commands, or the commands in one of them.",
    run: introspect::cat,
    ..FOR_ALL
};

const DELUSER: Command = Command {
    name: "DELUSER",
    syntax: "username [username ...]",
    arity: Arity::AtLeast(3),
    cost: "O(1) amortized time considering the typical user.",
    about: "Deletes users, and closes their connections.",
    tips: ON_ALL_NODES,
    secrets: Secrets::Behind(2),
    run: users::delete,
    ..FOR_ADMINISTRATORS
};

const DRYRUN: Command = Command {
    name: "DRYRUN",
    syntax: "username command [arg [arg ...]]",
    arity: Arity::AtLeast(4),
    since: "7.0.0",
    cost: "O(1).",
    about: "Checks whether a user may run a command, without running it.",
    run: introspect::dry_run,
    ..FOR_ADMINISTRATORS
};

const GENPASS: Command = Command {
    name: "GENPASS",
    syntax: "[bits]",
    about: "Generates a secure random password.",
    run: introspect::password,
    ..FOR_ALL
};

const GETUSER: Command = Command {
    name: "GETUSER",
    syntax: "username",
    arity: Arity::Exactly(3),
    history: &[
        Change::says("6.2.0", "Returns channels."),
        Change::says("7.0.0", "Returns selectors, and keys and channels as rules instead of lists."),
    ],
    cost: "O(N). Where N is the number of password, command and pattern rules that the user has.",
    about: "Returns the rules of a user.",
    secrets: Secrets::Behind(2),
    run: users::get,
    ..FOR_ADMINISTRATORS
};

const PER_USER: &str = "O(N). Where N is the number of configured users.";

const LIST: Command = Command {
    name: "LIST",
    arity: Arity::Exactly(2),
    cost: PER_USER,
    about: "Returns all users, as lines of the ACL file.",
    run: users::list,
    ..FOR_ADMINISTRATORS
};

const LOAD: Command = Command {
    name: "LOAD",
    arity: Arity::Exactly(2),
    cost: PER_USER,
    about: "Replaces all users by those of the ACL file.",
    run: users::load,
    ..FOR_ADMINISTRATORS
};

const LOG: Command = Command {
    name: "LOG",
    syntax: "operation:[count|RESET]",
    history: &[Change::says("7.2.0", "Returns an entry's number, and when it was created and last changed.")],
    cost: "O(N) with N being the number of entries shown.",
    about: "Returns the log of denied commands and logins, or clears it.",
    run: introspect::log,
    ..FOR_ADMINISTRATORS
};

const SAVE: Command = Command {
    name: "SAVE",
    arity: Arity::Exactly(2),
    cost: PER_USER,
    about: "Saves all users to the ACL file.",
    tips: ON_ALL_NODES,
    run: users::save,
    ..FOR_ADMINISTRATORS
};

const SETUSER: Command = Command {
    name: "SETUSER",
    syntax: "username [rule [rule ...]]",
    arity: Arity::AtLeast(3),
    history: &[
        Change::says("6.2.0", "Takes rules about channels."),
        Change::says("7.0.0", "Takes selectors, and rules about reading and writing keys."),
    ],
    cost: "O(N). Where N is the number of rules provided.",
    about: "Creates a user, or changes its rules.",
    tips: ON_ALL_NODES,
    secrets: Secrets::Behind(2),
    run: users::set,
    ..FOR_ADMINISTRATORS
};

const USERS: Command = Command {
    name: "USERS",
    arity: Arity::Exactly(2),
    cost: PER_USER,
    about: "Returns the names of all users.",
    run: users::names,
    ..FOR_ADMINISTRATORS
};

const WHOAMI: Command = Command {
    name: "WHOAMI",
    arity: Arity::Exactly(2),
    about: "Returns the name of the user of this connection.",
    run: who_am_i,
    ..FOR_ALL
};

fn who_am_i(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let user = std::sync::Arc::clone(&cx.session().user);
    cx.reply().bulk(user.name());
    Ok(())
}

const HELP: Command = help::row(Family::Server, "6.0.0");
