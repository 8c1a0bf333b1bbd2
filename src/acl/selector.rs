//! A selector: commands, keys and channels that together allow a request.

use super::listed::Listed;
use super::{CommandRules, Commands, RuleError, has_blanks};
use crate::value::glob;
use crate::value::number::until_nul;

/// The access to a key, requested or allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The data of the key is read.
    pub reads: bool,
    /// The data of the key is changed.
    pub writes: bool,
}

impl Access {
    const ALL: Access = Access { reads: true, writes: true };

    fn covers(self, other: Access) -> bool {
        (self.reads || !other.reads) && (self.writes || !other.writes)
    }

    fn and(self, other: Access) -> Access {
        Access { reads: self.reads || other.reads, writes: self.writes || other.writes }
    }
}

/// A request, as far as access control needs it.
#[derive(Clone, Debug, Default)]
pub struct AccessRequest<'a> {
    /// The index of its command.
    pub command: usize,
    /// Whether everyone may call it, even a client that has not logged in.
    pub is_free: bool,
    /// The word behind the command's name.
    pub first_argument: Option<&'a [u8]>,
    /// The keys of the request, each with its index among the words.
    pub keys: Vec<(usize, &'a [u8], Access)>,
    /// The channels of the request, each with its index among the words and whether it is a pattern.
    pub channels: Vec<(usize, &'a [u8], bool)>,
}

/// The reason why a request is refused. The order is that of Redis: among several reasons, the last one is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Denial {
    /// The command is not allowed.
    Command,
    /// The key that is the word at that index is not allowed.
    Key(usize),
    /// The channel that is the word at that index is not allowed.
    Channel(usize),
}

/// A set of rights to commands, keys and channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    commands: CommandRules,
    /// The key patterns; `None` for all keys.
    keys: Option<Listed<Vec<u8>, Access>>,
    /// The channel patterns; `None` for all channels.
    channels: Option<Listed<Vec<u8>, ()>>,
}

impl Selector {
    /// A selector that allows nothing, or only all channels.
    pub fn fresh(all_channels: bool) -> Selector {
        Selector {
            commands: CommandRules::all(false),
            keys: Some(Listed::default()),
            channels: (!all_channels).then(Listed::default),
        }
    }

    /// A selector that allows everything.
    pub fn unrestricted() -> Selector {
        Selector { commands: CommandRules::all(true), keys: None, channels: None }
    }

    /// Whether it allows everything.
    pub fn is_unrestricted(&self) -> bool {
        self.commands.allows_all() && self.keys.is_none() && self.channels.is_none()
    }

    /// Whether it allows all keys.
    pub fn allows_all_keys(&self) -> bool {
        self.keys.is_none()
    }

    /// The patterns of its channels; `None` if it allows all.
    pub fn channels(&self) -> Option<impl Iterator<Item = &Vec<u8>>> {
        self.channels.as_ref().map(|channels| channels.iter().map(|(pattern, ())| pattern))
    }

    /// Applies a rule.
    ///
    /// # Errors
    /// The fault of the rule; nothing changed.
    pub fn take(&mut self, rule: &[u8], commands: &dyn Commands) -> Result<(), RuleError> {
        match until_nul(rule).to_ascii_lowercase().as_slice() {
            b"allkeys" | b"~*" => self.keys = None,
            b"resetkeys" => self.keys = Some(Listed::default()),
            b"allchannels" | b"&*" => self.channels = None,
            b"resetchannels" => self.channels = Some(Listed::default()),
            b"allcommands" => self.commands = CommandRules::all(true),
            b"nocommands" => self.commands = CommandRules::all(false),
            [b'~', ..] => self.add_keys(&rule[1..], Access::ALL)?,
            [b'%', ..] => self.add_keys_by_access(&rule[1..])?,
            [b'&', ..] => self.add_channels(&rule[1..])?,
            [b'+' | b'-', ..] => self.commands.take(rule, commands)?,
            _ => return Err(RuleError::Syntax),
        }
        Ok(())
    }

    /// Adds `R~pattern`, `W~pattern` or both letters.
    fn add_keys_by_access(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        if self.keys.is_none() {
            return Err(RuleError::KeysAfterAll);
        }
        let letters = rule.iter().take_while(|&&byte| byte != b'~').count();
        let mut access = Access::default();
        for letter in &rule[..letters] {
            match letter.to_ascii_lowercase() {
                b'r' if !access.reads => access.reads = true,
                b'w' if !access.writes => access.writes = true,
                _ => return Err(RuleError::Syntax),
            }
        }
        if access == Access::default() {
            return Err(RuleError::Syntax);
        }
        self.add_keys(rule.get(letters + 1..).unwrap_or_default(), access)
    }

    fn add_keys(&mut self, pattern: &[u8], access: Access) -> Result<(), RuleError> {
        let Some(keys) = &mut self.keys else { return Err(RuleError::KeysAfterAll) };
        if has_blanks(pattern) {
            return Err(RuleError::Syntax);
        }
        let known = keys.get_or_add(pattern.to_vec(), access);
        *known = known.and(access);
        Ok(())
    }

    fn add_channels(&mut self, pattern: &[u8]) -> Result<(), RuleError> {
        let Some(channels) = &mut self.channels else { return Err(RuleError::ChannelsAfterAll) };
        if has_blanks(pattern) {
            return Err(RuleError::Syntax);
        }
        channels.get_or_add(pattern.to_vec(), ());
        Ok(())
    }

    /// Checks whether it allows a request.
    ///
    /// # Errors
    /// The reason why the request is refused.
    pub fn check_access(&self, request: &AccessRequest<'_>) -> Result<(), Denial> {
        if !request.is_free && !self.commands.allows(request.command, request.first_argument) {
            return Err(Denial::Command);
        }
        for &(index, key, access) in &request.keys {
            if !self.allows_key(key, access) {
                return Err(Denial::Key(index));
            }
        }
        for &(index, channel, is_pattern) in &request.channels {
            if self.channels().is_some_and(|known| !allows_channel(known, channel, is_pattern)) {
                return Err(Denial::Channel(index));
            }
        }
        Ok(())
    }

    fn allows_key(&self, key: &[u8], access: Access) -> bool {
        let Some(keys) = &self.keys else { return true };
        keys.iter().any(|(pattern, known)| known.covers(access) && glob::matches(pattern, key, false))
    }

    /// Whether it allows reading any key.
    pub fn reads_all_keys(&self) -> bool {
        let Some(keys) = &self.keys else { return true };
        keys.iter().any(|(pattern, access)| access.reads && pattern == b"*")
    }

    /// The commands, keys and channels of the selector as rules, each in one line.
    pub fn parts(&self) -> [Vec<u8>; 3] {
        let mut parts = [const { Vec::new() }; 3];
        self.commands.describe(&mut parts[0]);
        self.write_keys(&mut parts[1]);
        self.write_channels(&mut parts[2]);
        parts
    }

    fn write_keys(&self, line: &mut Vec<u8>) {
        let Some(keys) = &self.keys else { return line.extend_from_slice(b"~*") };
        let patterns = keys.iter().map(|(pattern, access)| (sign_of(*access), pattern.as_slice()));
        write_patterns(line, patterns);
    }

    fn write_channels(&self, line: &mut Vec<u8>) {
        let Some(channels) = &self.channels else { return line.extend_from_slice(b"&*") };
        let patterns = channels.iter().map(|(pattern, ())| (&b"&"[..], pattern.as_slice()));
        write_patterns(line, patterns);
    }

    /// Appends all its rules, in one line.
    pub fn describe(&self, line: &mut Vec<u8>) {
        let end_part = |line: &mut Vec<u8>, start| {
            if line.len() > start {
                line.push(b' ');
            }
        };
        let start = line.len();
        self.write_keys(line);
        end_part(line, start);
        if self.channels.is_some() {
            line.extend_from_slice(b"resetchannels ");
        }
        let start = line.len();
        self.write_channels(line);
        end_part(line, start);
        self.commands.describe(line);
    }
}

/// The sign in front of a pattern of keys.
fn sign_of(access: Access) -> &'static [u8] {
    match (access.reads, access.writes) {
        (true, false) => b"%R~",
        (false, true) => b"%W~",
        _ => b"~",
    }
}

/// Appends patterns with blanks between them, each behind its sign.
fn write_patterns<'p>(line: &mut Vec<u8>, patterns: impl Iterator<Item = (&'p [u8], &'p [u8])>) {
    for (number, (sign, pattern)) in patterns.enumerate() {
        if number > 0 {
            line.push(b' ');
        }
        line.extend_from_slice(sign);
        line.extend_from_slice(pattern);
    }
}

/// Whether one of `patterns` allows a channel. A pattern of channels must itself be one of them, as the channels that
/// it will match are not known.
pub(super) fn allows_channel<'p>(
    patterns: impl IntoIterator<Item = &'p Vec<u8>>,
    channel: &[u8],
    is_pattern: bool,
) -> bool {
    let mut patterns = patterns.into_iter();
    if is_pattern {
        patterns.any(|pattern| pattern == channel)
    } else {
        patterns.any(|pattern| glob::matches(pattern, channel, false))
    }
}
