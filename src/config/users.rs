//! `user` lines: users that a configuration file declares.
//!
//! They are tried here, so that a fault is told with its line, and made when the server starts. A rule about a command
//! that does not exist is left for then, as Redis does.

use crate::acl::{RuleError, User, merged};
use crate::engine::{Settings, Table};

/// Takes the words of a line, of which the first is `user` and the second the name.
pub(super) fn declare(settings: &mut Settings, words: &[String], commands: &Table) -> Result<(), String> {
    let [_, name, given @ ..] = words else { return Err("Syntax error".to_owned()) };
    let refused = |place: usize, reason: &str| {
        // Redis counts rules from the first word of the line, so the word that it names is an earlier one.
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
    let mut user = User::fresh(name.as_bytes(), settings.new_users_hear_all);
    for (place, rule) in rules.iter().enumerate() {
        match user.take(rule, settings.new_users_hear_all, commands) {
            Ok(()) | Err(RuleError::Unknown) => {}
            Err(error) => return refused(place, &error.to_string()),
        }
    }
    settings.users.push((name.clone(), given.to_vec()));
    Ok(())
}
