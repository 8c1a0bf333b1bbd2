//! A user: whether it may log in, with which passwords, and its rights.

use super::listed::Listed;
use super::selector::allows_channel;
use super::{AccessRequest, Commands, Denial, Password, RuleError, Selector, has_blanks};
use crate::resp::{Span, split_words};
use crate::value::number::until_nul;
use std::collections::BTreeSet;

/// A user of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: Vec<u8>,
    is_on: bool,
    needs_no_password: bool,
    sanitizes: bool,
    passwords: Listed<Password, ()>,
    /// The permissions of the user that are not in parentheses.
    root: Selector,
    others: Vec<Selector>,
}

/// Whether a name is valid for a user.
pub fn is_name(name: &[u8]) -> bool {
    !has_blanks(name)
}

impl User {
    /// A user that may not log in and do nothing, or only listen to all channels.
    pub fn fresh(name: &[u8], all_channels: bool) -> User {
        User {
            name: name.to_vec(),
            is_on: false,
            needs_no_password: false,
            sanitizes: true,
            passwords: Listed::default(),
            root: Selector::fresh(all_channels),
            others: Vec::new(),
        }
    }

    /// A user that may do everything, and needs no password.
    pub fn unrestricted(name: &[u8]) -> User {
        let user = User::fresh(name, true);
        User { is_on: true, needs_no_password: true, root: Selector::unrestricted(), ..user }
    }

    /// The name of the user.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Whether the user may log in.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether any password is accepted.
    pub fn needs_no_password(&self) -> bool {
        self.needs_no_password
    }

    /// The hashes of its passwords.
    pub fn passwords(&self) -> impl ExactSizeIterator<Item = &Password> {
        self.passwords.iter().map(|(password, ())| password)
    }

    /// The permissions of the user that are not in parentheses.
    pub fn root(&self) -> &Selector {
        &self.root
    }

    /// The further selectors of the user, which are in parentheses.
    pub fn others(&self) -> &[Selector] {
        &self.others
    }

    /// Whether that password logs it in now. It is compared with all of its passwords, so the time reveals nothing.
    pub fn accepts_password(&self, password: &[u8]) -> bool {
        let given = Password::of(password);
        let is_right = self.passwords().fold(false, |is_right, known| is_right | (*known == given));
        self.is_on && (self.needs_no_password || is_right)
    }

    /// Whether a login as `other`, a user of the same name in another world or at another time, is also valid for
    /// this user: it may log in, with any password or with all those that `other` accepts.
    pub fn accepts_login_of(&self, other: &User) -> bool {
        let lets_in = |password: &Password| self.passwords.contains(password);
        let has_its_passwords = !other.needs_no_password && other.passwords().all(lets_in);
        self.name == other.name && self.is_on && (self.needs_no_password || has_its_passwords)
    }

    /// Applies a rule. `all_channels` is whether a new user may listen to all channels.
    ///
    /// # Errors
    /// The fault of the rule; nothing changed.
    pub fn take(&mut self, rule: &[u8], all_channels: bool, commands: &dyn Commands) -> Result<(), RuleError> {
        match until_nul(rule).to_ascii_lowercase().as_slice() {
            _ if rule.is_empty() => {}
            b"on" => self.is_on = true,
            b"off" => self.is_on = false,
            b"nopass" => self.set_passwords(true),
            b"resetpass" => self.set_passwords(false),
            b"sanitize-payload" => self.sanitizes = true,
            b"skip-sanitize-payload" => self.sanitizes = false,
            [b'>', ..] => self.add_password(Password::of(&rule[1..])),
            [b'#', ..] => self.add_password(Password::parse(&rule[1..]).ok_or(RuleError::BadHash)?),
            [b'<', ..] => self.remove_password(Password::of(&rule[1..]))?,
            [b'!', ..] => self.remove_password(Password::parse(&rule[1..]).ok_or(RuleError::BadHash)?)?,
            [b'(', ..] if rule.ends_with(b")") => {
                self.others.push(selector(&rule[1..rule.len() - 1], all_channels, commands)?);
            }
            b"clearselectors" => self.others.clear(),
            b"reset" => *self = User::fresh(&self.name, all_channels),
            _ => self.root.take(rule, commands)?,
        }
        Ok(())
    }

    fn set_passwords(&mut self, needs_none: bool) {
        self.needs_no_password = needs_none;
        self.passwords = Listed::default();
    }

    fn add_password(&mut self, password: Password) {
        self.passwords.get_or_add(password, ());
        self.needs_no_password = false;
    }

    fn remove_password(&mut self, password: Password) -> Result<(), RuleError> {
        self.passwords.remove(&password).then_some(()).ok_or(RuleError::NoSuchPassword)
    }

    fn selectors(&self) -> impl Iterator<Item = &Selector> {
        [&self.root].into_iter().chain(&self.others)
    }

    /// Whether no request is refused to it.
    pub fn is_unrestricted(&self) -> bool {
        self.selectors().any(Selector::is_unrestricted)
    }

    /// Whether its rights depend on the keys of a request.
    pub fn checks_keys(&self) -> bool {
        !self.selectors().all(Selector::allows_all_keys)
    }

    /// Checks whether the user may do that.
    ///
    /// # Errors
    /// The reason why the request is refused.
    pub fn check_access(&self, request: &AccessRequest<'_>) -> Result<(), Denial> {
        let mut reason = Denial::Command;
        for selector in self.selectors() {
            match selector.check_access(request) {
                Ok(()) => return Ok(()),
                Err(denial) => reason = reason.max(denial),
            }
        }
        Err(reason)
    }

    /// Whether it may do that, and also read any key.
    pub fn may_read_all_keys(&self, request: &AccessRequest<'_>) -> bool {
        self.selectors().any(|selector| selector.reads_all_keys() && selector.check_access(request).is_ok())
    }

    /// Whether it may listen to all channels that `other` may, judged by their rules.
    pub fn covers_channels_of(&self, other: &User) -> bool {
        let Some(own) = self.channels() else { return true };
        other.channels().is_some_and(|channels| channels.is_subset(&own))
    }

    /// The patterns of its channels; `None` if it may listen to all.
    fn channels(&self) -> Option<BTreeSet<&Vec<u8>>> {
        let lists: Option<Vec<_>> = self.selectors().map(Selector::channels).collect();
        lists.map(|lists| lists.into_iter().flatten().collect())
    }

    /// Whether it may listen to that channel or pattern of channels.
    pub fn may_subscribe(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.channels().is_none_or(|channels| allows_channel(channels, channel, is_pattern))
    }

    /// The flags in ACL GETUSER.
    pub fn flags(&self) -> impl Iterator<Item = &'static str> + Clone {
        let names = [
            (self.is_on, "on"),
            (!self.is_on, "off"),
            (self.needs_no_password, "nopass"),
            (!self.sanitizes, "skip-sanitize-payload"),
            (self.sanitizes, "sanitize-payload"),
        ];
        names.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name)
    }

    /// The rules of the user in one line, without its name.
    pub fn describe(&self) -> Vec<u8> {
        let mut line = Vec::new();
        self.write_rules(&mut line);
        line
    }

    fn write_rules(&self, line: &mut Vec<u8>) {
        for flag in self.flags() {
            line.extend_from_slice(flag.as_bytes());
            line.push(b' ');
        }
        for password in self.passwords() {
            line.push(b'#');
            line.extend_from_slice(password.digits().as_bytes());
            line.push(b' ');
        }
        self.root.describe(line);
        for selector in &self.others {
            line.extend_from_slice(b" (");
            selector.describe(line);
            line.push(b')');
        }
    }

    /// The line of an ACL file: `user`, the name, and the rules.
    pub fn line(&self) -> Vec<u8> {
        let mut line = Vec::new();
        self.write_line(&mut line);
        line
    }

    /// Appends what [`User::line`] returns.
    pub fn write_line(&self, line: &mut Vec<u8>) {
        for part in [b"user ", self.name.as_slice(), b" "] {
            line.extend_from_slice(part);
        }
        self.write_rules(line);
    }
}

/// Reads a selector in brackets.
fn selector(rules: &[u8], all_channels: bool, commands: &dyn Commands) -> Result<Selector, RuleError> {
    let (mut text, mut spans) = (Vec::new(), Vec::new());
    if split_words(until_nul(rules), &mut text, &mut spans).is_err() {
        // Redis treats quotes that are not closed as no rule at all.
        spans.clear();
    }
    let mut selector = Selector::fresh(all_channels);
    for Span { start, end } in spans {
        selector.take(&text[start..end], commands)?;
    }
    Ok(selector)
}
