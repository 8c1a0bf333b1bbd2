//! The house rules, as tests: what ARCHITECTURE.md and CONTRIBUTING.md promise about the shape of the code.
//!
//! They read the sources as text. A rule with exceptions names each of them with its reason, and an exception that is
//! no longer needed fails the test, so the lists only shrink.

mod api;
mod ctx;
mod functions;
mod mutations;
mod pages;
mod source;

use std::collections::BTreeSet;

use functions::functions_of;
use source::{Source, sources};

/// The rooms of the library from the bottom to the top: a file uses only its own room and those before it, so no circle
/// of modules goes through two rooms.
const ROOMS: &[&str] = &[
    "value",
    "resp",
    "lua",
    "keyspace",
    "acl",
    "rdb",
    "storage",
    "aof",
    "script",
    "engine::spec",
    "engine::cluster",
    "engine::state",
    "engine::exec",
    "config",
    "commands",
    "server",
    "testkit",
];

/// Files that name a room above their own, each with its reason.
const ROOM_EXCEPTIONS: &[(&str, &str)] =
    &[("src/engine/spec/command.rs", "a row holds its functions, whose types name what they are given")];

const FILE_LINES: usize = 600;
const FUNCTION_LINES: usize = 60;
/// The maximum width of a comment, in characters: that of code, since rustfmt does not format comments.
const COMMENT_COLUMNS: usize = 120;
const ENGINE_FIELDS: usize = 15;
/// How many methods `Engine` has in all files: what a host of it calls. Anything else is a method of a struct of its
/// state, or a function of a module of `engine/exec`.
const ENGINE_METHODS: usize = 40;
/// The words with which a doc comment must not begin: they mean nothing where an editor shows that comment alone.
const EMPTY_OPENINGS: &[&str] =
    &["The same", "So many", "So much", "It is.", "It is not.", "See above", "Its name.", "Who ", "Whose "];

/// Files that are longer, each with its reason.
const LONG_FILES: &[(&str, &str)] = &[];

/// Functions that are longer, each with its reason.
const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[];

/// The home of each dependency: a file outside of it may not name the dependency.
const HOMES: &[(&str, &[&str])] = &[
    ("tokio", &["src/server/", "src/testkit/", "src/main.rs", "tests/", "benches/", "examples/"]),
    ("parking_lot", &["src/rdb/jobs.rs", "src/server/", "tests/"]),
    ("redis_protocol", &["src/resp/parser/tests.rs", "tests/", "fuzz/"]),
    ("skiplist", &["tests/", "benches/"]),
    ("criterion", &["benches/"]),
    ("proptest", &["tests/", "src/"]),
    ("num_bigint", &["src/value/number/"]),
    ("mlua_sys", &["src/lua/"]),
    ("corosensei", &["src/lua/"]),
    ("tracing", &["src/server/", "src/main.rs", "tests/"]),
];

/// The words that a layer must not contain: the word, the folder, and the reason.
const BANNED: &[(&str, &str, &str)] = &[
    ("std::fs", "src/engine/", "the engine opens no file"),
    ("std::net", "src/engine/", "the engine opens no socket"),
    ("std::thread", "src/engine/", "the engine starts no thread"),
    ("SystemTime", "src/engine/", "the engine gets the time as an argument"),
    ("Instant", "src/engine/", "the engine gets the time as an argument"),
    ("std::fs", "src/commands/", "commands wish for effects, the server carries them out"),
    ("std::net", "src/commands/", "commands wish for effects, the server carries them out"),
    ("SystemTime", "src/commands/", "commands ask the context what time it is"),
    ("Instant", "src/commands/", "commands ask the context what time it is"),
    ("std::fs", "src/value/", "a structure does no input or output"),
    ("std::fs", "src/aof/", "files are reached through `Storage`, so that a test can fail them"),
    ("std::fs", "src/rdb/", "files are reached through `Storage`, so that a test can fail them"),
    ("std::fs", "src/storage/", "the real file system is the server's"),
    ("std::fs", "src/keyspace/", "a structure does no input or output"),
    ("Reply", "src/value/", "a structure knows no reply"),
    ("Reply", "src/keyspace/", "a structure knows no reply"),
    ("thread::sleep", "src/", "nothing waits by sleeping: timers are awaited"),
    ("thread::sleep", "tests/", "a test moves the clock instead of sleeping"),
    ("thread::sleep", "examples/", "an example shows how nothing has to sleep"),
    ("thread::sleep", "benches/", "what is measured works"),
    ("time::sleep", "src/", "nothing waits by sleeping: events are signalled"),
    ("time::sleep", "tests/", "a test moves the clock instead of sleeping"),
    ("yield_now", "tests/", "a test waits for an event, and does not poll"),
    ("spin_loop", "tests/", "a test waits for an event, and does not poll"),
    ("park_timeout", "tests/", "a test waits for an event, and does not poll"),
    ("yield_now", "examples/", "an example shows that polling is not needed"),
];

/// Files that may contain a banned word nevertheless, each with its reason.
const BANNED_EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("src/server/stall.rs", "thread::sleep", "DEBUG SLEEP is there to make a server that does not answer"),
    ("src/server/background_saver.rs", "thread::sleep", "two settings are there to make a save or a load take long"),
    (
        "src/server/program/polling.rs",
        "thread::sleep",
        "neither another process nor the absence of clients can be awaited",
    ),
    ("src/server/program/signals.rs", "time::sleep", "a lock does not signal that it is free"),
    ("src/server/contain.rs", "time::sleep", "a task that panics at each start must leave others time"),
    ("src/server/listen.rs", "time::sleep", "the system does not signal that it has descriptors again"),
    ("src/server/loops.rs", "time::sleep", "its test measures the sleep of an event loop"),
    ("benches/fairness/main.rs", "thread::sleep", "the clients that are measured send at a pace of their own"),
    (
        "tests/support/timeout.rs",
        "yield_now",
        "processes, sockets and the system's clock do not signal what is waited for",
    ),
    ("tests/support/process.rs", "thread::sleep", "the clock of a real server can only be waited for"),
];

#[test]
fn a_room_uses_only_those_before_it() {
    let (mut faults, mut used) = (Vec::new(), BTreeSet::new());
    for source in sources("src") {
        let Some(room) = room_of_path(&source.path) else { continue };
        let is_excused = ROOM_EXCEPTIONS.iter().position(|(file, _)| *file == source.path);
        for (number, line) in source.code() {
            for above in modules_used(line).iter().filter_map(|module| room_of(module)).filter(|&above| above > room) {
                match is_excused {
                    Some(exception) => _ = used.insert(exception),
                    None => faults.push(format!("{}:{number} reaches up to {}", source.path, ROOMS[above])),
                }
            }
        }
    }
    faults.extend(unused(ROOM_EXCEPTIONS.len(), &used));
    none(&faults);
}

#[test]
fn a_dependency_is_named_only_in_its_home() {
    let mut faults = Vec::new();
    for source in sources(".") {
        for (number, line) in source.code() {
            for (name, homes) in HOMES {
                let named = line.contains(&format!("{name}::")) || line.contains(&format!("use {name};"));
                if named && !homes.iter().any(|home| source.path.starts_with(home)) {
                    faults.push(format!("{}:{number} names {name}, whose home is {homes:?}", source.path));
                }
            }
        }
    }
    none(&faults);
}

#[test]
fn the_pure_layers_use_nothing_impure() {
    let mut faults = Vec::new();
    let mut used = BTreeSet::new();
    for source in sources(".") {
        for (number, line) in source.code() {
            for (word, place, reason) in BANNED {
                if !source.path.starts_with(place) || source.path.starts_with("tests/tidy") || !has_word(line, word) {
                    continue;
                }
                match BANNED_EXCEPTIONS.iter().position(|(file, what, _)| *file == source.path && what == word) {
                    Some(exception) => _ = used.insert(exception),
                    None => faults.push(format!("{}:{number} names {word}: {reason}", source.path)),
                }
            }
        }
    }
    faults.extend(unused(BANNED_EXCEPTIONS.len(), &used));
    none(&faults);
}

#[test]
fn every_file_begins_with_a_head_that_says_why_it_exists() {
    let headless = sources(".").into_iter().filter(|source| !source.text.starts_with("//! "));
    none(&headless.map(|source| format!("{} has no head", source.path)).collect::<Vec<_>>());
}

#[test]
fn a_file_is_short_enough_to_be_read_at_one_sitting() {
    let mut faults = Vec::new();
    let mut used = BTreeSet::new();
    for source in sources(".") {
        let lines = source.text.lines().count();
        if lines <= FILE_LINES {
            continue;
        }
        match LONG_FILES.iter().position(|(file, _)| *file == source.path) {
            Some(exception) => _ = used.insert(exception),
            None => faults.push(format!("{} has {lines} lines", source.path)),
        }
    }
    faults.extend(unused(LONG_FILES.len(), &used));
    none(&faults);
}

#[test]
fn a_function_fits_on_a_screen() {
    let mut faults = Vec::new();
    let mut used = BTreeSet::new();
    for source in sources(".") {
        for function in functions_of(&source.text) {
            if function.lines <= FUNCTION_LINES {
                continue;
            }
            match LONG_FUNCTIONS.iter().position(|(file, name, _)| *file == source.path && *name == function.name) {
                Some(exception) => _ = used.insert(exception),
                None => {
                    let (path, line, name, lines) = (&source.path, function.line, &function.name, function.lines);
                    faults.push(format!("{path}:{line} {name} has {lines} lines"));
                }
            }
        }
    }
    faults.extend(unused(LONG_FUNCTIONS.len(), &used));
    none(&faults);
}

#[test]
fn a_comment_is_no_wider_than_the_code() {
    let faults = |source: Source| {
        let wide = source.comments().filter(|(_, line)| is_wide(line));
        wide.map(|(number, line)| format!("{}:{number} {line}", source.path)).collect::<Vec<_>>()
    };
    none(&sources(".").into_iter().flat_map(faults).collect::<Vec<_>>());
}

#[test]
fn the_engine_has_few_fields_and_methods() {
    let engine = sources("src/engine").into_iter().find(|source| source.path == "src/engine/mod.rs");
    let text = engine.expect("the engine has a file").text;
    let body = text.split("pub struct Engine {").nth(1).expect("Engine is a struct").split("\n}").next().unwrap_or("");
    let fields = body.lines().filter(|line| !line.trim().starts_with("//") && line.contains(':')).count();
    assert!((1..=ENGINE_FIELDS).contains(&fields), "Engine has {fields} fields, at most {ENGINE_FIELDS} are allowed");
    let methods: usize = sources("src/engine").iter().map(|source| methods_of_engine(&source.text)).sum();
    assert!((1..=ENGINE_METHODS).contains(&methods), "Engine has {methods} methods, {ENGINE_METHODS} are allowed");
}

/// The number of functions in the blocks of `impl Engine`, which end with a brace that begins a line.
fn methods_of_engine(text: &str) -> usize {
    let blocks = text.split("\nimpl Engine {\n").skip(1);
    let bodies = blocks.map(|block| block.split("\n}").next().unwrap_or(""));
    let is_method = |line: &&str| {
        let declared = line.strip_prefix("    ").filter(|line| !line.starts_with(' ')).unwrap_or("");
        let declared = declared.rsplit_once("fn ").map_or("no function", |(before, _)| before);
        declared.is_empty() || declared.starts_with("pub") || declared.starts_with("const")
    };
    bodies.map(|body| body.lines().filter(is_method).count()).sum()
}

#[test]
fn a_doc_comment_says_something_by_itself() {
    let begins_empty = |line: &str| {
        let text = line.trim().strip_prefix("/// ");
        text.is_some_and(|text| EMPTY_OPENINGS.iter().any(|opening| text.starts_with(opening)))
    };
    let faults = |source: Source| {
        let mut previous_is_doc = false;
        let mut faults = Vec::new();
        for (number, line) in source.text.lines().enumerate() {
            if !previous_is_doc && begins_empty(line) {
                faults.push(format!("{}:{} {}", source.path, number + 1, line.trim()));
            }
            previous_is_doc = line.trim().starts_with("///");
        }
        faults
    };
    none(&sources("src").into_iter().flat_map(faults).collect::<Vec<_>>());
}

#[test]
fn names_contain_no_history_and_no_work_is_left_undone() {
    const WORDS: &[&str] = &["TODO", "FIXME", "XXX", "todo!(", "unimplemented!("];
    const PREFIXES: &[&str] = &["fn new_", "fn fast_", "fn old_", "struct New", "struct Old"];
    const SUFFIXES: &[&str] = &["_v2", "_old", "_optimized"];
    // A method of the trait that takes events.
    const OF_TRACING: &str = "fn new_span(";
    let mut faults = Vec::new();
    for source in sources(".").into_iter().filter(|source| !source.path.starts_with("tests/tidy")) {
        for (number, line) in source.text.lines().enumerate() {
            let left = WORDS.iter().any(|word| line.contains(word));
            let named = PREFIXES.iter().any(|word| line.contains(word)) && !line.contains(OF_TRACING);
            let ended = SUFFIXES.iter().any(|word| line.contains("fn ") && line.contains(&format!("{word}(")));
            if left || named || ended {
                faults.push(format!("{}:{} {}", source.path, number + 1, line.trim()));
            }
        }
    }
    none(&faults);
}

#[test]
fn an_exception_from_a_lint_or_a_test_has_a_reason() {
    let mut faults = Vec::new();
    for source in sources(".").into_iter().filter(|source| !source.path.starts_with("tests/tidy")) {
        for (number, line) in source.code() {
            let bare_ignore = line.trim() == "#[ignore]";
            let allowed = line.contains("#[allow(") || line.contains("#![allow(") || line.contains("#[expect(");
            if bare_ignore || (allowed && line.trim_end().ends_with(")]") && !line.contains("reason = ")) {
                faults.push(format!("{}:{number} {}", source.path, line.trim()));
            }
        }
    }
    none(&faults);
}

/// Crates of tests, benches and fuzz targets share one module; every other file belongs to one crate.
#[test]
fn test_crates_share_code_through_one_module_of_support() {
    const SUPPORT: (&str, &str) = ("../support/mod.rs", "mod support;");
    const FUZZ: [(&str, &str); 2] =
        [("../../tests/support/mod.rs", "mod support;"), ("../../tests/fuzz/targets/mod.rs", "pub mod targets;")];
    let mut faults = Vec::new();
    for source in sources(".").into_iter().filter(|source| !source.path.starts_with("tests/tidy")) {
        let lines: Vec<(usize, &str)> = source.code().collect();
        for (place, (number, line)) in lines.iter().enumerate() {
            let Some((_, path)) = line.split_once("#[path = \"") else { continue };
            let included = (path.trim_end_matches("\"]"), lines.get(place + 1).map_or("", |(_, line)| *line));
            let is_allowed = match source.path.as_str() {
                "fuzz/src/lib.rs" => FUZZ.contains(&included),
                path => included == SUPPORT && path.ends_with("/main.rs"),
            };
            if !is_allowed {
                faults.push(format!("{}:{number} {line}", source.path));
            }
        }
    }
    none(&faults);
}

#[test]
fn unsafe_code_is_only_in_the_listed_files() {
    const HOMES_OF_UNSAFE: &[&str] = &[
        "src/lua/calls.rs",
        "src/lua/code.rs",
        "src/lua/coroutines.rs",
        "src/lua/memory.rs",
        "src/lua/mod.rs",
        "src/lua/location.rs",
        "src/lua/run.rs",
        "src/lua/stack.rs",
        "src/lua/standard.rs",
        "src/lua/table_functions.rs",
        "src/lua/tables.rs",
        "src/server/processors/long_slices.rs",
        "src/value/simd.rs",
        "src/value/simd/dot_product.rs",
    ];
    let mut faults = Vec::new();
    for source in sources("src") {
        let found = source.code().any(|(_, line)| has_word(line, "unsafe"));
        if found != HOMES_OF_UNSAFE.contains(&source.path.as_str()) {
            faults.push(source.path);
        }
    }
    none(&faults);
}

/// The example of CONTRIBUTING.md for adding a command is the code itself.
#[test]
fn the_command_in_contributing_is_that_of_the_source() {
    let root = env!("CARGO_MANIFEST_DIR");
    let read =
        |path: &str| std::fs::read_to_string(format!("{root}/{path}")).expect("it is there").replace("\r\n", "\n");
    let guide = read("CONTRIBUTING.md");
    let (before, after) = guide.split_once("```rust\n").expect("it shows a command");
    let path = before.rsplit("<!-- ").next().and_then(|mark| mark.split(" -->").next()).expect("it names a file");
    let lines: Vec<&str> =
        after.split("   ```").next().unwrap_or_default().lines().map(|line| line.get(3..).unwrap_or("")).collect();
    assert!(read(path).contains(lines.join("\n").trim_end()), "CONTRIBUTING.md no longer shows {path} as it is");
}

#[test]
fn every_mutation_fits_the_code_and_every_known_hole_has_one() {
    let root = env!("CARGO_MANIFEST_DIR");
    let read =
        |path: &str| std::fs::read_to_string(format!("{root}/{path}")).ok().map(|text| text.replace("\r\n", "\n"));
    let list = read("tests/mutations/list").expect("it is there");
    none(&mutations::faults_of(&list, read));
    assert_eq!(
        mutations::holes_without(&list),
        [] as [u32; 0],
        "these have no mutation and no reason why not, or both"
    );
}

#[test]
fn every_page_about_the_test_kit_shows_its_test_in_every_language() {
    let root = env!("CARGO_MANIFEST_DIR");
    let read = |path: &str| std::fs::read_to_string(format!("{root}/{path}")).expect("it is there");
    let (tour, index) = (read("src/lib.rs"), read("docs/test-kit/README.md"));
    let pages = std::fs::read_dir(format!("{root}/docs/test-kit")).expect("there are pages");
    let mut faults = Vec::new();
    for page in pages {
        let name = page.expect("the folder can be read").file_name().to_string_lossy().into_owned();
        faults.extend(pages::faults_of(&name, &read(&format!("docs/test-kit/{name}")), &tour));
        if name != "README.md" && !index.contains(&format!("({name})")) {
            faults.push(format!("the list of pages has no {name}"));
        }
    }
    none(&faults);
}

#[test]
fn users_see_the_server_its_builder_the_client_and_the_kit_and_nothing_else() {
    const SERVER: &[&str] = &["Builder", "Server", "StartError", "World"];
    const CLIENT: &[&str] = &["CallError", "Client", "Message", "Reply"];
    const TESTS: &[&str] = &["TestServer", "test"];
    const ASSERTIONS: &[&str] =
        &["Expected", "assert_exists!", "assert_journal!", "assert_missing!", "assert_reply!", "assert_ttl!"];
    const JOURNAL: &[&str] = &["ClusterJournal", "Entry", "Journal", "Source"];
    const FAULTS: &[&str] = &["Disk", "DiskFaultRule", "FaultRule", "State"];
    const STRICT_MODE: &[&str] = &["Finding", "Level", "Rule", "Strict"];
    let mut wanted = [SERVER, CLIENT, TESTS, ASSERTIONS, JOURNAL, FAULTS, STRICT_MODE].concat();
    wanted.sort_unstable();
    assert_eq!(api::names_shown(&sources("src")), wanted);
}

/// The position of a module's room. A module of the engine outside of its four rooms is about the engine as a whole,
/// and so belongs to the last of them.
fn room_of(module: &str) -> Option<usize> {
    let mut parts = module.split("::");
    let top = parts.next()?;
    let inner = parts.next().filter(|_| top == "engine").map(|inner| format!("engine::{inner}"));
    let whole = if top == "engine" { "engine::exec" } else { top };
    let place = |wanted: &str| ROOMS.iter().position(|room| *room == wanted);
    inner.and_then(|inner| place(&inner)).or_else(|| place(whole))
}

fn room_of_path(path: &str) -> Option<usize> {
    room_of(&path.strip_prefix("src/")?.trim_end_matches(".rs").replace('/', "::"))
}

/// The modules that a line names as `crate::module` or `use crate::{module, ...}`, two levels deep in the first form.
fn modules_used(line: &str) -> Vec<String> {
    let is_part = |c: &char| c.is_alphanumeric() || *c == '_';
    let name = |text: &str| text.chars().take_while(is_part).collect::<String>();
    let mut used = Vec::new();
    // `pub(in crate::engine)` says who may see an item, and uses nothing.
    for rest in line.replace("(in crate::", "(in ").split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            Some(list) => used.extend(list.split(',').map(|item| name(item.trim()))),
            None => {
                let (top, inner) = rest.split_once("::").unwrap_or((rest, ""));
                let path = [name(top), name(inner)];
                used.push(path.join("::").trim_end_matches(':').to_owned());
            }
        }
    }
    used
}

fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(is_part);
        let after = line[at + word.len()..].chars().next().is_some_and(is_part);
        !before && !after
    })
}

/// Whether a comment is too wide although it could be wrapped: a single word, such as a link, cannot.
fn is_wide(comment: &str) -> bool {
    let words = comment.trim_start().trim_start_matches(['/', '!']);
    comment.chars().count() > COMMENT_COLUMNS && words.split_whitespace().nth(1).is_some()
}

fn unused(count: usize, used: &BTreeSet<usize>) -> Vec<String> {
    (0..count)
        .filter(|index| !used.contains(index))
        .map(|index| format!("exception {index} is no longer needed"))
        .collect()
}

fn none(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Checks the rules themselves on a text that breaks them: a rule that finds nothing would pass, too.
#[test]
fn the_rules_find_what_breaks_them() {
    let source = Source {
        path: "src/value/x.rs".to_owned(),
        text: "use crate::{engine, resp};\n// crate::server\nuse crate::engine::state::Session;\n".to_owned(),
    };
    let used: Vec<String> = source.code().flat_map(|(_, line)| modules_used(line)).collect();
    assert_eq!(used, ["engine", "resp", "engine::state"]);
    let rooms = ["engine::state", "engine::Engine", "engine", "value::zset", "main"].map(room_of);
    assert_eq!(
        rooms.map(|room| room.map(|room| ROOMS[room])),
        [Some("engine::state"), Some("engine::exec"), Some("engine::exec"), Some("value"), None]
    );
    assert!(has_word("let t = Instant::now();", "Instant"));
    assert!(!has_word("struct InstantReply;", "Instant"));
    let lacks = pages::faults_of("new.md", "\n```rust,test_harness\n\n```python\n", "");
    let wanted = ["shows no Java", "shows no Node.js", "shows no Go"].map(|fault| format!("new.md {fault}"));
    assert_eq!(lacks, [&wanted[..], &["nobody runs the Rust of new.md".to_owned()]].concat());
    let (link, row) = (format!("/// https://{}", "x".repeat(120)), format!("    // {}", "ä b ".repeat(28) + "c"));
    assert_eq!([&link, &row, &format!("{row}c")].map(|line| is_wide(line)), [false, false, true]);
    let list = "\n== 1: a\nfile: x\n-a\n+b\ntest: lib a\n\n== 2: b\nfile: x\n-c\n";
    let faults = mutations::faults_of(list, |_| Some("a c c".to_owned()));
    assert_eq!(faults, ["2: b: x has its old lines 2 times", "2: b: names no test"]);
    let root = "/// A.\n#[doc(hidden)]\npub mod a;\npub mod b;\npub use c::{\n    D,\n    e,\n};\npub fn f() {}\n";
    let macros = "#[macro_export]\nmacro_rules! g {\n}\nmacro_rules! h {\n}\n#[doc(hidden)]\n#[macro_export]\nmacro_rules! i {\n";
    let root = Source { path: "src/lib.rs".to_owned(), text: format!("{root}{macros}") };
    assert_eq!(api::names_shown(&[root]), ["D", "b", "e", "f", "g!"]);
    let long = format!("fn long() {{\n{}}}\n", "    step();\n".repeat(70));
    assert_eq!(functions_of(&long).first().map(|function| function.lines), Some(72));
}
