//! All users, by name.
//!
//! A session shares its user ([`std::sync::Arc`]); a user that changes is replaced, in the map and in the sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Commands, RuleError, User};

const DEFAULT: &[u8] = b"default";

/// The users; the one named `default` always exists.
#[derive(Clone, Debug)]
pub struct Users {
    by_name: BTreeMap<Vec<u8>, Arc<User>>,
    default: Arc<User>,
    is_open: bool,
}

impl Default for Users {
    /// The default user, which may do everything and needs no password.
    fn default() -> Users {
        let default = Arc::new(User::unrestricted(DEFAULT));
        let by_name = BTreeMap::from([(DEFAULT.to_vec(), Arc::clone(&default))]);
        Users { by_name, default, is_open: true }
    }
}

impl Users {
    /// The user of a client that has not logged in.
    pub fn default_user(&self) -> &Arc<User> {
        &self.default
    }

    /// Whether no request is refused to any user.
    pub fn are_unrestricted(&self) -> bool {
        self.is_open
    }

    /// Whether a client must log in before anything else.
    pub fn must_log_in(&self) -> bool {
        !(self.default.needs_no_password() && self.default.is_on())
    }

    /// The user with that name.
    pub fn get(&self, name: &[u8]) -> Option<&Arc<User>> {
        self.by_name.get(name)
    }

    /// The user with that name, if that password logs it in now. If the user does not exist, the password of another
    /// one is checked, so that the time does not reveal which names exist.
    pub fn authenticated(&self, name: &[u8], password: &[u8]) -> Option<&Arc<User>> {
        let known = self.get(name);
        let is_right = known.unwrap_or(&self.default).accepts_password(password);
        known.filter(|_| is_right)
    }

    /// All users, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<User>> {
        self.by_name.values()
    }

    /// Adds a user, in place of the one with that name. Returns the shared user.
    pub fn put(&mut self, user: User) -> Arc<User> {
        let user = Arc::new(user);
        if user.name() == DEFAULT {
            self.default = Arc::clone(&user);
        }
        self.by_name.insert(user.name().to_vec(), Arc::clone(&user));
        self.refresh_is_open();
        user
    }

    /// Removes a user, unless it is the default one; false if there is none with that name.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let is_gone = name != DEFAULT && self.by_name.remove(name).is_some();
        self.refresh_is_open();
        is_gone
    }

    fn refresh_is_open(&mut self) {
        self.is_open = self.by_name.values().all(|user| user.is_unrestricted());
    }

    /// The user with that name, or a new one, after these rules; the stored user does not change.
    ///
    /// # Errors
    /// The index of the first rule that is refused, and the reason.
    pub fn with_rules(
        &self,
        name: &[u8],
        rules: &[Vec<u8>],
        all_channels: bool,
        commands: &dyn Commands,
    ) -> Result<User, (usize, RuleError)> {
        let known = self.get(name).map(|user| User::clone(user));
        let mut user = known.unwrap_or_else(|| User::fresh(name, all_channels));
        for (index, rule) in rules.iter().enumerate() {
            user.take(rule, all_channels, commands).map_err(|error| (index, error))?;
        }
        Ok(user)
    }

    /// All users as lines of an ACL file.
    pub fn text(&self) -> Vec<u8> {
        self.iter().flat_map(|user| [user.line(), b"\n".to_vec()].concat()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl::Password;

    #[test]
    fn a_password_is_hashed_even_for_an_unknown_user() {
        let users = Users::default();
        for (name, is_admitted) in [(DEFAULT, true), (b"nobody", false)] {
            let before = Password::hashed();
            assert_eq!(users.authenticated(name, b"any").is_some(), is_admitted);
            assert_eq!(Password::hashed(), before + 1);
        }
    }
}
