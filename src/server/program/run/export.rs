//! `dunlin run --export`: a server for a shell, which runs the lines that are printed and so has its variables.
//!
//! ```text
//! shell -- $(dunlin run --export) --> first process -- starts --> second process: the server
//!       <------- export lines ------               <- the lines, --
//!                 and its end                       once it serves
//! ```
//!
//! The first process ends when the second one serves, or has written why it cannot. The second one has left the
//! terminal's session, so that the terminal's keys do not end it, and inherits nothing that is open, as whoever reads
//! from there would wait for its end: only `--verbose` leaves it the standard error. It ends with the shell, which is
//! the parent of the first process, however that ends.
//!
//! Costs: one more start of the program.

use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitCode, Stdio};

use super::options::Options;
use super::server::CommandServer;
use super::{NO_SERVER, checked, variables};
use crate::server::os_host::reason;
use crate::server::program::{background, print};

/// The environment variable of the second process: the id of the process that it ends with.
const MARK: &str = "DUNLIN_EXPORT_FOR";

/// The byte after each of the two texts that the second process writes: the export lines, and messages for the user. No
/// variable can contain it.
const END: u8 = 0;

/// Starts the second process and prints its lines; or serves, if this is that process.
///
/// # Errors
/// A sentence with the reason why the server cannot be started.
pub(super) fn run(options: &Options) -> Result<ExitCode, String> {
    if cfg!(not(target_os = "linux")) {
        return Err("--export works on Linux only: elsewhere the server would not end with the shell".to_owned());
    }
    match env::var(MARK) {
        Ok(id) => serve(options, id.parse().map_err(|_| format!("{MARK} is no process id"))?),
        Err(_) => start(options).map_err(|error| reason(&error)),
    }
}

/// Starts the second process, and prints its lines when it serves; if it has ended instead, what it has written.
fn start(options: &Options) -> io::Result<ExitCode> {
    close_inherited();
    let mut command = Command::new(env::current_exe()?);
    command.args(env::args_os().skip(1)).env(MARK, parent_id().to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(if options.is_verbose { Stdio::inherit() } else { Stdio::piped() });
    let mut server = command.spawn()?;
    let (mut lines, mut told) = (Vec::new(), Vec::new());
    if let Some(output) = server.stdout.take() {
        let mut output = BufReader::new(output);
        output.read_until(END, &mut lines)?;
        output.read_until(END, &mut told)?;
    }
    match (lines.pop(), told.pop()) {
        (Some(END), Some(END)) => {
            io::stderr().write_all(&told)?;
            Ok(print(&String::from_utf8_lossy(&lines)))
        }
        _ => report(server),
    }
}

/// Closes what the shell has left open for this process besides its three streams.
fn close_inherited() {
    #[cfg(target_os = "linux")]
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        let number = |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
        let open: Vec<std::os::fd::RawFd> = open.filter_map(number).collect();
        // That of the folder is among them, and closed by now.
        open.into_iter().filter(|open| *open > 2).for_each(|open| _ = nix::unistd::close(open));
    }
}

/// Writes what a process has written to its standard error, to its end.
fn report(mut server: Child) -> io::Result<ExitCode> {
    let mut text = Vec::new();
    if let Some(mut errors) = server.stderr.take() {
        errors.read_to_end(&mut text)?;
    }
    io::stderr().write_all(&text)?;
    Ok(ExitCode::from(NO_SERVER))
}

/// Serves until the process with that id has ended, or a signal has come.
fn serve(options: &Options, id: u32) -> Result<ExitCode, String> {
    background::leave_terminal();
    let mut server = CommandServer::start(options)?;
    let has_files = !options.dump.is_empty() || !options.journal.is_empty();
    if let Err(why) = server.end_with_process(id, has_files).and_then(|()| tell(options, &server)) {
        server.end();
        return Err(why);
    }
    server.wait();
    // Nobody reads what it writes any more: the files are left, and the exit status is nobody's.
    checked(options, &server);
    Ok(ExitCode::SUCCESS)
}

/// Writes the export lines, and messages for the user, to the first process.
fn tell(options: &Options, server: &CommandServer) -> Result<(), String> {
    let variables = variables::of(server.addresses(), &options.names, options.only_names);
    let lines: String = variables.iter().map(|(name, value)| line(name, value.as_deref())).collect();
    let page = server.addresses().page.as_ref().filter(|_| options.shows_page);
    let told = page.map_or_else(String::new, |link| format!("dunlin run: the page is at {link}\n"));
    let mut output = io::stdout();
    let written = [lines, told].iter().try_for_each(|text| output.write_all(&[text.as_bytes(), &[END]].concat()));
    written.and_then(|()| output.flush()).map_err(|error| reason(&error))
}

/// A line by which a shell sets a variable for the programs that it starts, or removes it.
fn line(name: &str, value: Option<&str>) -> String {
    match value {
        Some(value) => format!("export {name}='{}';\n", value.replace('\'', "'\\''")),
        None => format!("unset {name};\n"),
    }
}

#[cfg(unix)]
fn parent_id() -> u32 {
    std::os::unix::process::parent_id()
}

/// There is no shell to end with on this system.
#[cfg(not(unix))]
fn parent_id() -> u32 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_every_value_as_it_is() {
        assert_eq!(line("A", Some("redis://127.0.0.1:7000/1")), "export A='redis://127.0.0.1:7000/1';\n");
        assert_eq!(line("A", Some("a 'b' $c")), "export A='a '\\''b'\\'' $c';\n");
        assert_eq!(line("A", None), "unset A;\n");
    }
}
