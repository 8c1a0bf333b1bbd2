//! Expressions, with the answers that Redis 8.0.6 gives.

use super::*;

const ATTRIBUTES: &[u8] =
    br#" {"year":1999, "genre":"drama","tags":["x",2,null,true],"ok":true,"none":null,"deep":{"a":[1]},"price":1.5e1}"#;

fn matches(text: &str) -> bool {
    Filter::parse(text.as_bytes()).expect("it is an expression").matches(ATTRIBUTES)
}

fn error(text: &str) -> Option<usize> {
    Filter::parse(text.as_bytes()).err()
}

#[test]
fn operators_have_their_precedence() {
    let all = ["1 + 2 * 3 == 7", "2 ** 3 ** 2 == 512", "(1 + 2) * 3 == 9", "7 % 4 - 1 == 2", "1 or 0 and 0", "!0 == 1"];
    assert!(all.into_iter().all(matches));
    assert!(["10 / 4 == 2", "1 > 2 or 3 < 2", "not 1"].into_iter().all(|text| !matches(text)));
}

#[test]
fn fields_are_read_and_a_missing_one_matches_nothing() {
    let all = [".year > 1990", ".genre == 'drama'", ".ok", ".price == 15", "!.none", ".genre in ['war', \"drama\"]"];
    assert!(all.into_iter().all(matches));
    assert!([".missing or 1", ".deep or 1", "."].into_iter().all(|text| !matches(text)));
}

#[test]
fn a_list_has_what_equals_one_of_its_values() {
    assert!(["'x' in .tags", "2 in .tags", "1 in .tags", "'2' in [2]", "[1] == [2]"].into_iter().all(matches));
    assert!(["'y' in .tags", "'x' in 'xyz'", "3 in []"].into_iter().all(|text| !matches(text)));
}

#[test]
fn texts_count_as_the_numbers_that_they_are() {
    assert!(["'12' + 1 == 13", "' 0x10' == 16", "'12a' == 0", "'' == 0", "'abc' < 1"].into_iter().all(matches));
    assert!(!matches("''"));
}

#[test]
fn errors_of_tokens_have_their_place_and_all_others_are_at_the_beginning() {
    let places =
        [("@", 0), (".a @", 3), ("foo", 3), (".a = 3", 4), ("'abc", 4), ("1e", 2), ("[1, x]", 4), ("[1 2]", 3)];
    assert!(
        places.into_iter().all(|(text, place)| error(text) == Some(place)),
        "{:?}",
        places.map(|(text, _)| error(text))
    );
    assert!(
        ["", "(", ")", "(1", "1)", "1 +", "!!1", "1 2", ".a == null", "null"]
            .into_iter()
            .all(|text| error(text) == Some(0))
    );
}

#[test]
fn a_minus_is_a_sign_unless_a_value_is_before_it() {
    assert!(["-1 < 0", "3 -1 == 2", "3 - -1 == 4", "(3) -1 == 2", ".year -1999 == 0"].into_iter().all(matches));
    assert_eq!(error("-.year"), Some(0));
}

#[test]
fn broken_attributes_are_read_as_far_as_they_go() {
    let filter = Filter::parse(b".a == 1").expect("it is an expression");
    let reads = |attributes: &str| filter.matches(attributes.as_bytes());
    assert!(
        reads("{\"a\":1") && reads("{\"b\":[{],\"a\":1}") && reads("{\"a\":1,\"a\":2}") && reads("\n{\"a\" : +1}x")
    );
    assert!(!reads("") && !reads("[1]") && !reads("{\"b\":x,\"a\":1}") && !reads("{\"a\":-}") && !reads("{\"a"));
    let deep = format!("{{\"a\":{}", "[".repeat(100_000));
    assert!(!reads(&deep));
    let deep = format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(Filter::parse(deep.as_bytes()).is_ok_and(|filter| filter.matches(b"{}")));
}
