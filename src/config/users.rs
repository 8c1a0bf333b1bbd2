//! `user` lines: users that a configuration file declares.
//!
//! The rules are parsed here, so that an error is reported with its line; the users are created when the server starts.
//! A rule about an unknown command is checked only then, as in Redis.

use crate::acl::{RuleError, User, merged};
use crate::engine::{Settings, Table};

/// Parses the words of a line: the first is `user` and the second the name.
pub(super) fn declare(settings: &mut Settings, words: &[String], commands: &Table) -> Result<(), String> {
    let [_, name, given @ ..] = words else { return Err("Syntax error".to_owned()) };
    let refused = |place: usize, reason: &str| {
        // Redis counts rules from the first word of the line, so the error names an earlier word.
        let word = words.get(place).map_or("", String::as_str);
        Err(format!("Error in user declaration '{word}': {reason}"))
    };
    if settings.users.iter().any(|(known, _)| known == name) {
        return refused(1, &RuleError::DeclaredTwice.to_string());
    }
    let given_bytes: Vec<Vec<u8>> = given.iter().map(|word| word.as_bytes().to_vec()).collect();
    let rules = match merged(&given_bytes) {
        Ok(rules) => rules,
        Err(place) => return refused(place, "Wrong format"),
    };
    let mut user = User::fresh(name.as_bytes(), settings.new_users_get_all_channels);
    for (place, rule) in rules.iter().enumerate() {
        match user.take(rule, settings.new_users_get_all_channels, commands) {
            Ok(()) | Err(RuleError::Unknown) => {}
            Err(error) => return refused(place, &error.to_string()),
        }
    }
    settings.users.push((name.clone(), given.to_vec()));
    Ok(())
}
