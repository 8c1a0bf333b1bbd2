//! Tests of `cjson`; expected are the replies of Redis 8.0.6.

use crate::script::testing::{expect, interpreter, run, shown};

#[test]
fn values_become_json() {
    expect(&[
        (
            "cjson.encode({1, 'a', true, false, cjson.null, {}, {x = {1.5}}})",
            "[1,\"a\",true,false,null,{},{\"x\":[1.5]}]",
        ),
        ("cjson.encode(nil), cjson.encode(-0.1), cjson.encode(1e15), cjson.encode('')", "null -0.1 1e+15 \"\""),
        (
            "cjson.encode('a/b\\\\\"\\n\\t\\r\\b\\f\\1\\127\\255')",
            "\"a\\/b\\\\\\\"\\n\\t\\r\\b\\f\\u0001\\u007f\u{ff}\"",
        ),
        (
            "cjson.encode({[1] = 1, [3] = 3}), cjson.encode({[0] = 1}), cjson.encode({[1.5] = 1})",
            "[1,null,3] {\"0\":1} {\"1.5\":1}",
        ),
        ("cjson.encode({[2^40] = 1})", "{\"1099511627776\":1}"),
    ]);
}

#[test]
fn values_without_a_json_form_are_refused() {
    for (value, message) in [
        ("tostring", "Cannot serialise function: type not supported"),
        ("{1, {tostring}}", "Cannot serialise function: type not supported"),
        ("{[{}] = 1}", "Cannot serialise table: table key must be a number or string"),
        ("{[100] = 1}", "Cannot serialise table: excessively sparse array"),
        ("0/0", "Cannot serialise number: must not be NaN or Inf"),
        ("1, 2", "bad argument #1 to '?' (expected 1 argument)"),
    ] {
        assert_eq!(shown(&format!("fails(cjson.encode, {value})")), message, "{value}");
    }
}

#[test]
fn json_becomes_values() {
    expect(&[
        ("unpack(cjson.decode('[1,-2.5e3,\"x\",true,false,null]'))", "1 -2500 x true false null"),
        ("cjson.decode('{\"a\":{\"b\":[]}, \"c\" : 3}').c", "3"),
        (
            "cjson.decode('\"\\\\u0041\\\\u00e9\\\\ud83d\\\\ude00\\\\/\\\\n\"')",
            "A\u{c3}\u{a9}\u{f0}\u{9f}\u{98}\u{80}/\n",
        ),
        ("cjson.decode('0x10'), cjson.decode('nan'), cjson.decode('-Infinity'), cjson.decode('+1')", "16 nan -inf 1"),
        ("cjson.decode('12\\0 what')", "12"),
    ]);
}

#[test]
fn invalid_json_is_refused_with_its_position() {
    for (text, message) in [
        ("", "Expected value but found T_END at character 1"),
        ("x", "Expected value but found invalid token at character 1"),
        ("[1", "Expected comma or array end but found T_END at character 3"),
        ("[1 2]", "Expected comma or array end but found T_NUMBER at character 4"),
        ("{1:2}", "Expected object key string but found T_NUMBER at character 2"),
        ("{\"a\" 1}", "Expected colon but found T_NUMBER at character 6"),
        ("{\"a\":1,}", "Expected object key string but found T_OBJ_END at character 8"),
        ("[1]]", "Expected the end but found T_ARR_END at character 4"),
        ("\"abc", "Expected value but found unexpected end of string at character 5"),
        ("\"\\\\x\"", "Expected value but found invalid escape code at character 2"),
        ("\"\\\\ud83d\"", "Expected value but found invalid unicode escape code at character 2"),
        ("-", "Expected value but found invalid number at character 1"),
        ("\\0\\0", "JSON parser does not support UTF-16 or UTF-32"),
    ] {
        assert_eq!(shown(&format!("fails(cjson.decode, '{text}')")), message, "{text}");
    }
}

#[test]
fn settings_last_as_long_as_the_interpreter_and_each_cjson_table_has_its_own() {
    let mut lua = interpreter();
    let run = |lua: &mut _, source: &str| run(lua, usize::MAX, source);
    assert_eq!(run(&mut lua, "return show(cjson.encode_max_depth(2), cjson.new().encode_max_depth())"), "2 1000");
    assert_eq!(run(&mut lua, "return fails(cjson.encode, {{{}}})"), "Cannot serialise, excessive nesting (3)");
    assert_eq!(run(&mut lua, "return show(cjson.encode_sparse_array(true, 1, 2))"), "true 1 2");
    assert_eq!(run(&mut lua, "return cjson.encode({[9] = 1})"), "{\"9\":1}");
    assert_eq!(run(&mut lua, "return show(cjson.encode_invalid_numbers('null'), cjson.encode(0/0))"), "null null");
    assert_eq!(run(&mut lua, "return show(cjson.encode_number_precision(3), cjson.encode(1/3))"), "3 0.333");
    assert_eq!(
        run(&mut lua, "cjson.decode_invalid_numbers(false) return fails(cjson.decode, '0x1')"),
        "Expected value but found invalid number at character 1"
    );
    assert_eq!(
        run(&mut lua, "return fails(cjson.encode_max_depth, 0)"),
        "bad argument #1 to '?' (expected integer between 1 and 2147483647)"
    );
    assert_eq!(
        run(&mut lua, "return fails(cjson.encode_keep_buffer, 'x')"),
        "bad argument #1 to '?' (invalid option 'x')"
    );
}

/// A case of CVE-2022-24834.
#[test]
fn values_that_are_too_deep_or_too_large_are_errors() {
    const NESTED: &str = "local t = {} for _ = 1, 1e5 do t = {t} end ";
    let fails =
        |source: &str| run(&mut interpreter(), usize::MAX, &format!("{NESTED} return fails(function() {source} end)"));
    assert_eq!(fails("cjson.encode(t)"), "user_script:1: Cannot serialise, excessive nesting (1001)");
    assert_eq!(
        fails("cjson.encode_max_depth(2^31 - 1) cjson.encode(t)").split('(').next(),
        Some("user_script:1: Cannot serialise, excessive nesting ")
    );
    assert_eq!(
        fails("cjson.decode(('['):rep(1e5))"),
        "user_script:1: Found too many nested data structures (1001) at character 1001"
    );
    assert_eq!(
        fails("cjson.decode_max_depth(2^31 - 1) cjson.decode(('['):rep(1e5))").split('(').next(),
        Some("user_script:1: Found too many nested data structures ")
    );
    assert_eq!(fails("cjson.encode_sparse_array(true, 0) cjson.encode({[2^30] = 1})"), "not enough memory");
    assert_eq!(
        fails("cjson.encode({[1/0] = 1, [-1/0] = 2})"),
        "user_script:1: Cannot serialise number: must not be NaN or Inf"
    );
    assert_eq!(fails("cjson.encode(('\\1'):rep(1.5e7))"), "not enough memory");
}

#[test]
fn encoding_a_value_far_larger_than_its_tables_is_interrupted() {
    let source = "local t = {} for _ = 1, 900 do t = {t, t} end return cjson.encode(t)";
    assert_eq!(run(&mut interpreter(), 3, source), "ended");
    assert_eq!(
        run(&mut interpreter(), usize::MAX, &format!("return fails(function() {source} end)")),
        "not enough memory"
    );
}
