//! Users and rules, against a small table of commands.

use std::ops::Range;

use proptest::prelude::*;

use super::*;

/// `config` has two subcommands; the others have none.
struct Few;

const NAMES: [&str; 7] = ["get", "set", "select", "config", "config|get", "config|set", "ping"];
const CATEGORIES: [(&str, &[usize]); 3] = [("read", &[0, 4]), ("write", &[1]), ("slow", &[2, 3])];

impl Commands for Few {
    fn index(&self, name: &[u8]) -> Option<usize> {
        NAMES.iter().position(|known| known.as_bytes().eq_ignore_ascii_case(name))
    }

    fn name(&self, index: usize) -> &str {
        NAMES[index]
    }

    fn is_subcommand(&self, index: usize) -> bool {
        NAMES[index].contains('|')
    }

    fn subcommands(&self, index: usize) -> Range<usize> {
        if NAMES[index] == "config" { 4..6 } else { 0..0 }
    }

    fn in_category(&self, name: &[u8]) -> Option<Vec<usize>> {
        let found = CATEGORIES.iter().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name));
        found.map(|(_, indexes)| indexes.to_vec())
    }
}

fn user(rules: &[&str]) -> Result<User, (usize, RuleError)> {
    let rules: Vec<Vec<u8>> = rules.iter().map(|rule| rule.as_bytes().to_vec()).collect();
    Users::default().with_rules(b"ann", &rules, false, &Few)
}

fn described(rules: &[&str]) -> String {
    String::from_utf8(user(rules).expect("the rules are right").describe()).expect("it is text")
}

fn error(rules: &[&str]) -> RuleError {
    user(rules).expect_err("a rule is wrong").1
}

#[test]
fn a_rule_replaces_the_rules_that_it_overrides() {
    let table: [(&[&str], &str); 9] = [
        (&["+get", "+set", "-get"], "-@all +set -get"),
        (&["+config|get", "+config|set", "-config"], "-@all -config"),
        (&["+config", "-config|get"], "-@all +config -config|get"),
        (&["+SELECT|A", "+select|b", "+select|a"], "-@all +select|b +select|a"),
        (&["+select|a", "-select"], "-@all -select"),
        (&["+@READ", "-get", "-@read"], "-@all -get -@read"),
        (&["+get", "+@ALL"], "+@all"),
        (&["+@all", "-get", "nocommands"], "-@all"),
        (&["allcommands", "-@slow", "+@slow"], "+@all +@slow"),
    ];
    for (rules, commands) in table {
        assert_eq!(described(rules), format!("off sanitize-payload resetchannels {commands}"), "{rules:?}");
    }
}

#[test]
fn keys_and_channels_are_shown_as_rules() {
    let table: [(&[&str], &str); 6] = [
        (&["~a", "%R~b", "%w~c", "%rW~d"], "~a %R~b %W~c ~d resetchannels -@all"),
        (&["%R~a", "%W~a", "~a"], "~a resetchannels -@all"),
        (&["~a", "~*"], "~* resetchannels -@all"),
        (&["%RW~*"], "~* resetchannels -@all"),
        (&["&a", "&b", "&a"], "resetchannels &a &b -@all"),
        (&["&a", "allchannels", "(&x %R~k +get)"], "&* -@all (%R~k resetchannels &x -@all +get)"),
    ];
    for (rules, rights) in table {
        assert_eq!(described(rules), format!("off sanitize-payload {rights}"), "{rules:?}");
    }
}

#[test]
fn a_wrong_rule_is_refused_with_its_reason() {
    let table: [(&[&str], RuleError); 16] = [
        (&["+nosuch"], RuleError::Unknown),
        (&["+@nosuch"], RuleError::Unknown),
        (&["-get|a"], RuleError::Unknown),
        (&["+config|nosuch"], RuleError::Unknown),
        (&["+"], RuleError::Unknown),
        (&["nosuch"], RuleError::Syntax),
        (&["+config|"], RuleError::Syntax),
        (&["(on)"], RuleError::Syntax),
        (&["%~a"], RuleError::Syntax),
        (&["%RR~a"], RuleError::Syntax),
        (&["~a b"], RuleError::Syntax),
        (&["+config|get|a"], RuleError::FirstArgumentOfSubcommand),
        (&["~*", "~a"], RuleError::KeysAfterAll),
        (&["&*", "&a"], RuleError::ChannelsAfterAll),
        (&["<secret"], RuleError::NoSuchPassword),
        (&["#12"], RuleError::BadHash),
    ];
    for (rules, reason) in table {
        assert_eq!(error(rules), reason, "{rules:?}");
    }
}

#[test]
fn every_prefix_of_a_key_pattern_is_a_rule_or_refused() {
    // CVE-2024-31227: a `%` without letters ended the server.
    let whole = "%RW~x";
    for end in 1..=whole.len() {
        for rule in [whole[..end].to_owned(), format!("({})", &whole[..end])] {
            assert_eq!(user(&[&rule]).is_ok(), end > 1, "{rule}");
        }
    }
    for rule in ["%", "%~", "%~x", "(%~x)", "%x~y", "%RWR~x"] {
        assert_eq!(error(&[rule]), RuleError::Syntax, "{rule}");
    }
}

#[test]
fn the_time_of_a_login_shows_only_whether_it_succeeds() {
    let ann = user(&["on", ">one", ">two", ">one"]).expect("the rules are right");
    assert!(ann.accepts_password(b"one") && ann.accepts_password(b"two") && !ann.accepts_password(b"three"));
    assert_eq!(ann.passwords().len(), 2);
    assert!(
        !user(&["off", "nopass"]).expect("the rules are right").accepts_password(b"one"),
        "a user that is off cannot log in"
    );
}

fn request(command: &str, keys: &'static [(&'static str, bool, bool)]) -> AccessRequest<'static> {
    let index = Few.index(command.as_bytes()).expect("the command is there");
    let keys = keys.iter().enumerate();
    let keys = keys.map(|(index, &(key, reads, writes))| (index + 1, key.as_bytes(), Access { reads, writes }));
    AccessRequest { command: index, keys: keys.collect(), ..AccessRequest::default() }
}

#[test]
fn one_selector_must_allow_all_of_a_request() {
    let ann = user(&["+get", "~a", "(+set %W~b)"]).expect("the rules are right");
    assert_eq!(ann.check_access(&request("get", &[("a", true, false)])), Ok(()));
    assert_eq!(ann.check_access(&request("set", &[("b", false, true)])), Ok(()));
    assert_eq!(ann.check_access(&request("set", &[("b", true, true)])), Err(Denial::Key(1)));
    assert_eq!(ann.check_access(&request("get", &[("b", true, false)])), Err(Denial::Key(1)));
    assert_eq!(ann.check_access(&request("get", &[("a", true, false), ("c", true, false)])), Err(Denial::Key(2)));
    assert_eq!(ann.check_access(&request("ping", &[])), Err(Denial::Command));
}

#[test]
fn a_subscribed_pattern_must_equal_an_allowed_pattern() {
    let ann = user(&["&a*"]).expect("the rules are right");
    assert!(ann.may_subscribe(b"abc", false) && ann.may_subscribe(b"a*", true));
    assert!(!ann.may_subscribe(b"b", false) && !ann.may_subscribe(b"ab*", true));
}

#[test]
fn an_acl_file_loads_whole_or_not_at_all() {
    let users = parse(b"\n  user bob on nopass ~a (+get ~b)\r\nuser  on\n", "f", false, &Few).expect("it is right");
    let names: Vec<&[u8]> = users.iter().map(|user| user.name()).collect();
    assert_eq!(names, [&b""[..], b"bob", b"default"]);
    let text = b"# hello\nuser\nuser x +nosuch foo bar\nuser x\nuser y (+get\n";
    let Fault(faults) = parse(text, "f", false, &Few).expect_err("it is wrong");
    let message = "f:1 should start with user keyword followed by the username. \
                f:2 should start with user keyword followed by the username. \
                f:3: Error in applying operation '+nosuch': Unknown command or category name in ACL. \
                f:3: Syntax error. \
                WARNING: Duplicate user 'x' found on line 4. \
                f:5: Unmatched parenthesis in selector definition.\
                WARNING: ACL errors detected, no change to the previously active ACL rules was performed";
    assert_eq!(faults, message);
}

/// Rules of all kinds, right and wrong ones.
fn rules() -> impl Strategy<Value = Vec<String>> {
    let command = "[+-](get|set|select|config|config\\|(get|set)|GET|nosuch|@read|@write|@slow|@all|ping)";
    let plain = prop_oneof![
        4 => command,
        1 => "\\+(select|get|ping)\\|[a-cA]",
        2 => "(~|%R~|%W~|%RW~|&)(a|b|a\\*|)",
        1 => "(reset|all)(keys|channels)|allcommands|nocommands",
    ];
    let selector = proptest::collection::vec(plain.clone(), 0..5).prop_map(|rules| format!("({})", rules.join(" ")));
    let user = "on|off|nopass|resetpass|reset|clearselectors|(skip-)?sanitize-payload|[><][ab]|";
    let rule = prop_oneof![6 => plain, 1 => selector, 1 => user];
    proptest::collection::vec(rule, 0..20)
}

/// The rights of a user for each command, first argument and key.
fn rights(user: &User) -> Vec<bool> {
    let mut rights = Vec::new();
    for command in 0..NAMES.len() {
        for argument in ["a", "b", "get"] {
            for (reads, writes) in [(false, false), (true, false), (false, true)] {
                let keys = vec![(1, argument.as_bytes(), Access { reads, writes })];
                let channels = vec![(1, argument.as_bytes(), reads)];
                let request = AccessRequest {
                    command,
                    first_argument: Some(argument.as_bytes()),
                    keys,
                    channels,
                    is_free: false,
                };
                rights.push(user.check_access(&request).is_ok());
            }
        }
    }
    rights
}

proptest! {
    #[test]
    fn a_user_made_from_its_own_line_has_the_same_rights(rules in rules(), all_channels: bool) {
        let mut user = User::fresh(b"ann", all_channels);
        for rule in &rules {
            let before = user.clone();
            if user.take(rule.as_bytes(), all_channels, &Few).is_err() {
                prop_assert_eq!(&user, &before, "a rule that is refused changes nothing");
            }
        }
        let line = [user.line(), b"\n".to_vec()].concat();
        let users = parse(&line, "f", all_channels, &Few).expect("a user's line is right");
        let again = users.get(b"ann").expect("it is there");
        prop_assert_eq!(again.line(), user.line());
        prop_assert_eq!(rights(again), rights(&user));
        prop_assert!(again.covers_channels_of(&user) && user.covers_channels_of(again));
    }

    #[test]
    fn no_text_makes_the_parser_of_rules_panic(
        rule in proptest::collection::vec(any::<u8>(), 0..40),
        text in "[ -~\\n]{0,80}",
    ) {
        let mut user = User::fresh(b"ann", false);
        let _ = user.take(&rule, false, &Few);
        let _ = parse(text.as_bytes(), "f", false, &Few);
    }
}
