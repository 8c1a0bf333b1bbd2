//! Finds programs of others on the machine: redis-cli, interpreters, compilers.

use std::env;
use std::io::{self, Write};
use std::process::{Command, Output, Stdio};

/// A program that is there, with what its environment needs.
pub struct Program {
    path: String,
    environment: Vec<(&'static str, String)>,
}

impl Program {
    /// The program of that name, if it runs with `probe` as its arguments.
    pub fn find(name: &str, probe: &[&str]) -> Option<Program> {
        Program { path: name.to_owned(), environment: Vec::new() }.checked(name, probe)
    }

    /// A Python that has a module; `DUNLIN_TEST_PYTHON` names one.
    pub fn python_with(module: &str) -> Option<Program> {
        let path = env::var("DUNLIN_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let probe = format!("import {module}");
        Program { path, environment: Vec::new() }.checked(&format!("Python's {module}"), &["-c", &probe])
    }

    /// A Node.js that has a module; `DUNLIN_TEST_NODE_PATH` names the folder of its modules.
    pub fn node_with(module: &str) -> Option<Program> {
        let modules = env::var("DUNLIN_TEST_NODE_PATH").map(|path| ("NODE_PATH", path));
        let environment = modules.into_iter().collect();
        let probe = format!("require('{module}')");
        Program { path: "node".to_owned(), environment }.checked(&format!("Node's {module}"), &["-e", &probe])
    }

    /// A Node.js that has what the tests of the page need; `DUNLIN_TEST_PAGE_PATH` names the folder of its modules.
    pub fn node_for_the_page() -> Option<Program> {
        let modules = env::var("DUNLIN_TEST_PAGE_PATH").map(|path| ("NODE_PATH", path));
        let environment = modules.into_iter().collect();
        let probe = "['playwright-core', 'axe-core', 'esbuild', 'typescript', 'preact'].forEach(require)";
        Program { path: "node".to_owned(), environment }.checked("what the page's tests need of npm", &["-e", probe])
    }

    /// The program of `clients/go`, which `DUNLIN_TEST_GO_PROGRAM` names, built.
    pub fn of_go() -> Option<Program> {
        let path = env::var("DUNLIN_TEST_GO_PROGRAM").unwrap_or_default();
        Program { path, environment: Vec::new() }.checked("the program in Go", &["--help"])
    }

    /// A Java that has the clients of `clients/java`; `DUNLIN_TEST_JAVA_CLASSPATH` names their archives.
    pub fn java_with_clients() -> Option<Program> {
        let archives = env::var("DUNLIN_TEST_JAVA_CLASSPATH").unwrap_or_default();
        let environment = vec![("CLASSPATH", archives.clone())];
        let path = if archives.is_empty() { String::new() } else { "java".to_owned() };
        Program { path, environment }.checked("Java with clients", &["--version"])
    }

    /// A Go that has the modules of `clients/go` already.
    #[cfg(unix)]
    pub fn go_with_clients() -> Option<Program> {
        let environment = vec![("GOPROXY", "off".to_owned()), ("GOFLAGS", "-mod=readonly".to_owned())];
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/go");
        Program { path: "go".to_owned(), environment }.checked("Go with clients", &["-C", folder, "list", "-deps", "."])
    }

    /// Another program of the same environment.
    pub fn beside(&self, name: &str) -> Program {
        Program { path: name.to_owned(), environment: self.environment.clone() }
    }

    fn checked(self, name: &str, probe: &[&str]) -> Option<Program> {
        let probed = self.command().args(probe).stdout(Stdio::null()).stderr(Stdio::null()).status();
        if probed.is_ok_and(|status| status.success()) {
            return Some(self);
        }
        assert!(env::var_os("DUNLIN_TEST_EVERYTHING").is_none(), "{name} is missing, and nothing is to be skipped");
        // Not by `eprintln!`, which a test that passes keeps to itself.
        writeln!(io::stderr(), "skipped: {name} is not installed").expect("somebody reads what is skipped");
        None
    }

    /// A command that runs it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// Runs a program to its end with `input`; returns its output.
pub fn run(command: &mut Command, input: &str) -> String {
    let output = output(command, input);
    let text = String::from_utf8(output.stdout).expect("its output is text");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Runs a program to its end that has findings in `input`, and says so with its status; returns what it reports.
pub fn findings(command: &mut Command, input: &str) -> String {
    let output = output(command, input);
    assert!(!output.status.success(), "it finds nothing");
    String::from_utf8(output.stderr).expect("its report is text")
}

fn output(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    child.stdin.take().expect("its input is a pipe").write_all(input.as_bytes()).expect("it reads its input");
    child.wait_with_output().expect("the program ends")
}
