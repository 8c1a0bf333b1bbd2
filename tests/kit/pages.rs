//! The examples with redis-cli in docs/test-kit work as shown.
//!
//! In a block marked `console`, a line with redis-cli's prompt is a command, and the lines after it are the reply as
//! redis-cli shows it. A line that starts with `$ redis-cli --raw` or `$ redis-cli -x` is one too, with a raw reply; `>
//! file` and `< file` at its end mean a file that later lines can read. The blocks of a page share one server, whose
//! clock is frozen at the beginning of 2026.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use dunlin::resp::split_words;
use dunlin::{Client, Reply, Server};

const BEGINNING: Duration = Duration::from_secs(1_767_225_600);
const PROMPT: &str = "127.0.0.1:6379> ";

#[test]
fn the_examples_on_the_pages_work_as_shown() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/test-kit");
    for entry in fs::read_dir(folder).expect("there are pages") {
        let path = entry.expect("the folder can be read").path();
        play(&fs::read_to_string(&path).expect("a page can be read"), &path.display().to_string());
    }
}

fn play(page: &str, name: &str) {
    let server = Server::builder().frozen_at(UNIX_EPOCH + BEGINNING).start().expect("it starts");
    let mut client = server.client().expect("there is room");
    let (mut files, mut shown, mut in_console) = (BTreeMap::new(), Vec::new(), false);
    for (number, line) in page.lines().enumerate() {
        if line.starts_with("```") {
            assert!(shown.is_empty(), "{name} does not show all of {shown:?}");
            in_console = line == "```console";
        } else if in_console && (line.starts_with(PROMPT) || line.starts_with("$ ")) {
            assert!(shown.is_empty(), "{name} does not show all of {shown:?}");
            shown = answer(&mut client, line, &mut files);
            shown.reverse();
        } else if in_console {
            assert_eq!(Some(line), shown.pop().as_deref(), "{name}, line {}", number + 1);
        }
    }
}

/// The lines that redis-cli shows.
fn answer(client: &mut Client, line: &str, files: &mut BTreeMap<String, String>) -> Vec<String> {
    if let Some(command) = line.strip_prefix(PROMPT) {
        return lines(client.call(words(command)));
    }
    let line = line.strip_prefix("$ redis-cli ").expect("only redis-cli is shown");
    let (line, target) = line.split_once(" > ").map_or((line, None), |(line, file)| (line, Some(file)));
    let (line, source) = line.split_once(" < ").map_or((line, None), |(line, file)| (line, Some(file)));
    let mut words = words(line.trim_start_matches("--raw ").trim_start_matches("-x "));
    words.extend(source.map(|file| files[file].clone().into_bytes()));
    let text = match client.call(words) {
        Ok(reply) => reply.text().expect("it has a raw form").into_owned(),
        Err(error) => format!("{error}\n"),
    };
    match target {
        Some(file) => {
            files.insert(file.to_owned(), text);
            Vec::new()
        }
        None => text.lines().map(str::to_owned).collect(),
    }
}

fn words(line: &str) -> Vec<Vec<u8>> {
    let (mut text, mut spans) = (Vec::new(), Vec::new());
    split_words(line.as_bytes(), &mut text, &mut spans).expect("quotes are balanced");
    spans.into_iter().map(|span| text[span.start..span.end].to_vec()).collect()
}

fn lines(reply: Result<Reply, dunlin::CallError>) -> Vec<String> {
    match reply {
        Err(error) => vec![format!("(error) {error}")],
        Ok(Reply::Null) => vec!["(nil)".to_owned()],
        Ok(Reply::Integer(number)) => vec![format!("(integer) {number}")],
        Ok(Reply::Status(text)) => vec![text],
        Ok(Reply::Bytes(bytes)) => vec![format!("\"{}\"", bytes.escape_ascii())],
        Ok(Reply::Array(items)) if items.is_empty() => vec!["(empty array)".to_owned()],
        Ok(Reply::Array(items)) => {
            let items = items.into_iter().enumerate();
            items.map(|(place, item)| format!("{}) {}", place + 1, lines(Ok(item)).concat())).collect()
        }
        Ok(other) => panic!("no page shows {other:?}"),
    }
}
