//! All users, by their names.
//!
//! A session shares the user that it acts as ([`std::sync::Arc`]); a user that changes is replaced, here and there.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Commands, RuleError, User};

const DEFAULT: &[u8] = b"default";

/// The users; the one called `default` is always there.
#[derive(Clone, Debug)]
pub struct Users {
    by_name: BTreeMap<Vec<u8>, Arc<User>>,
    default: Arc<User>,
    is_open: bool,
}

impl Default for Users {
    /// The default user, who may do everything and needs no password.
    fn default() -> Users {
        let default = Arc::new(User::unrestricted(DEFAULT));
        let by_name = BTreeMap::from([(DEFAULT.to_vec(), Arc::clone(&default))]);
        Users { by_name, default, is_open: true }
    }
}

impl Users {
    /// Whom a client acts as that has not logged in.
    pub fn default_user(&self) -> &Arc<User> {
        &self.default
    }

    /// True when nothing is refused to anybody.
    pub fn are_unrestricted(&self) -> bool {
        self.is_open
    }

    /// Whether a client that has not logged in may do nothing but that.
    pub fn must_log_in(&self) -> bool {
        !(self.default.needs_no_password() && self.default.is_on())
    }

    /// The user of that name.
    pub fn get(&self, name: &[u8]) -> Option<&Arc<User>> {
        self.by_name.get(name)
    }

    /// The user of that name, if that password lets it in now. Where there is none of that name another one's password
    /// is tried, so that the time does not tell which names there are.
    pub fn authenticated(&self, name: &[u8], password: &[u8]) -> Option<&Arc<User>> {
        let known = self.get(name);
        let is_right = known.unwrap_or(&self.default).accepts_password(password);
        known.filter(|_| is_right)
    }

    /// All of them, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<User>> {
        self.by_name.values()
    }

    /// Adds a user, in place of the one of that name. Answers how it is shared.
    pub fn put(&mut self, user: User) -> Arc<User> {
        let user = Arc::new(user);
        if user.name() == DEFAULT {
            self.default = Arc::clone(&user);
        }
        self.by_name.insert(user.name().to_vec(), Arc::clone(&user));
        self.refresh_is_open();
        user
    }

    /// Removes a user, unless it is the default one; false when there is none of that name.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let is_gone = name != DEFAULT && self.by_name.remove(name).is_some();
        self.refresh_is_open();
        is_gone
    }

    fn refresh_is_open(&mut self) {
        self.is_open = self.by_name.values().all(|user| user.is_unrestricted());
    }

    /// What the user of that name becomes by these rules, or a new one by them; nothing changes here.
    ///
    /// # Errors
    /// The first rule that is refused, by its place, and why.
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
    fn a_password_is_hashed_whether_there_is_such_a_user_or_not() {
        let users = Users::default();
        for (name, is_admitted) in [(DEFAULT, true), (b"nobody", false)] {
            let before = Password::hashed();
            assert_eq!(users.authenticated(name, b"any").is_some(), is_admitted);
            assert_eq!(Password::hashed(), before + 1);
        }
    }
}
