//! The tests that docs/test-kit shows in languages other than Rust, run as a reader would run them.
//!
//! A block names its file in its first line. All blocks of a language are written into one folder, where the language's
//! own runner runs them in one process. That runner prints how many tests passed; the number must be that of the tests
//! on the pages.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binary;
use crate::programs::{Program, run};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A language, and the marks by which its blocks on a page and the tests in them are found.
struct Language {
    fence: &'static str,
    test: &'static str,
}

/// The blocks of one language as files in a folder of their own.
struct ExtractedTests {
    folder: PathBuf,
    names: Vec<String>,
    tests: usize,
}

impl Language {
    fn extracted(&self) -> ExtractedTests {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages").join(self.fence);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("there is room for the files");
        let (mut names, mut tests) = (Vec::new(), 0);
        for (page, block) in self.blocks() {
            let name =
                block.lines().next().and_then(|line| line.trim_start_matches(['#', '/']).split_whitespace().next());
            let name =
                name.filter(|name| name.contains('.')).unwrap_or_else(|| panic!("a block of {page} names no file"));
            assert!(!names.iter().any(|other| other == name), "{page}: {name} is there already");
            fs::write(folder.join(name), &block).expect("the folder can be written");
            names.push(name.to_owned());
            tests += block.matches(self.test).count();
        }
        ExtractedTests { folder, names, tests }
    }

    fn blocks(&self) -> Vec<(String, String)> {
        let fence = format!("\n```{}\n", self.fence);
        let mut blocks = Vec::new();
        for page in fs::read_dir(format!("{ROOT}/docs/test-kit")).expect("there are pages") {
            let path = page.expect("the folder can be read").path();
            let text = fs::read_to_string(&path).expect("a page can be read");
            let found = text.split(&fence).skip(1).map(|rest| rest.split("```\n").next().unwrap_or(rest).to_owned());
            blocks.extend(found.map(|block| (path.display().to_string(), block)));
        }
        blocks
    }
}

impl ExtractedTests {
    /// A command in the folder that finds our program as a reader's would.
    fn command(&self, program: &Program) -> Command {
        let program_of_tests = binary::program();
        let ours = program_of_tests.parent().expect("the program is in a folder");
        let others = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([ours.to_owned()].into_iter().chain(env::split_paths(&others)));
        let mut command = program.command();
        command.current_dir(&self.folder).env("PATH", path.expect("a folder's name has no colon in it"));
        command
    }

    fn all_passed(&self, passed: Option<usize>, output: &str) {
        assert!(self.tests > 0 && passed == Some(self.tests), "{} tests should have passed:\n{output}", self.tests);
    }
}

/// The number right before a word.
fn number_before(text: &str, word: &str) -> Option<usize> {
    text.split(word).next()?.rsplit(|other: char| !other.is_ascii_digit()).next()?.parse().ok()
}

#[test]
fn the_tests_in_python_pass() {
    let Some(python) = Program::python_with("redis, pytest") else { return };
    let tests = Language { fence: "python", test: "\ndef test_" }.extracted();
    let output = run(tests.command(&python).args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]), "");
    tests.all_passed(number_before(&output, " passed"), &output);
}

#[test]
fn the_tests_in_java_pass() {
    let Some(java) = Program::java_with_clients() else { return };
    let tests = Language { fence: "java", test: "@Test\n" }.extracted();
    let mut compiler = tests.command(&java.beside("javac"));
    run(compiler.args(["-d", "classes"]).args(&tests.names), "");
    let archives = format!("classes:{}", env::var("DUNLIN_TEST_JAVA_CLASSPATH").unwrap_or_default());
    let mut command = tests.command(&java);
    command.args(["-cp", &archives, "org.junit.platform.console.ConsoleLauncher", "execute"]);
    let output = run(command.args(["--scan-class-path=classes", "--details=tree", "--disable-banner"]), "");
    tests.all_passed(number_before(&output, " tests successful"), &output);
}

#[test]
fn the_tests_in_node_pass() {
    let Some(node) = Program::node_with("ioredis") else { return };
    let tests = Language { fence: "js", test: "\ntest(" }.extracted();
    if let Some(modules) = env::var_os("DUNLIN_TEST_NODE_PATH") {
        symlink(modules, tests.folder.join("node_modules")).expect("the folder is empty");
    }
    let all: String = tests.names.iter().map(|name| format!("import './{name}'\n")).collect();
    fs::write(tests.folder.join("all.mjs"), all).expect("the folder can be written");
    let output = run(tests.command(&node).args(["--test-reporter=tap", "all.mjs"]), "");
    let passed = output.lines().find_map(|line| line.strip_prefix("# pass ")?.parse().ok());
    tests.all_passed(passed, &output);
}

#[test]
fn the_tests_in_go_pass() {
    let Some(go) = Program::go_with_clients() else { return };
    let tests = Language { fence: "go", test: "\nfunc Test" }.extracted();
    for file in ["go.mod", "go.sum"] {
        fs::copy(format!("{ROOT}/tests/clients/go/{file}"), tests.folder.join(file)).expect("it is there");
    }
    let output = run(tests.command(&go).args(["test", "-v", "-count=1", "./..."]), "");
    tests.all_passed(Some(output.matches("--- PASS: ").count()), &output);
}
