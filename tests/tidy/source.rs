//! The project's own Rust sources as text.

use std::fs;
use std::path::{Path, PathBuf};

/// One source file.
pub struct Source {
    /// The path of the file from the project's root, with slashes.
    pub path: String,
    /// The text of the file.
    pub text: String,
}

impl Source {
    /// The lines of code, each with its number.
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines().filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// The lines that are comments, each with its number.
    pub fn comments(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines().filter(|(_, line)| line.trim_start().starts_with("//"))
    }

    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

/// All `.rs` files below a folder of the project, in the order of their names.
pub fn sources(below: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    collect(&root.join(below), &mut paths);
    paths.sort();
    let relative = |path: &PathBuf| {
        let path = path.strip_prefix(root).expect("it was found below the root");
        path.to_string_lossy().replace('\\', "/").trim_start_matches("./").to_owned()
    };
    let read = |path: &PathBuf| fs::read_to_string(path).expect("a source is text");
    paths.iter().map(|path| Source { path: relative(path), text: read(path) }).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            collect(&path, paths);
        } else if name.ends_with(".rs") {
            paths.push(path);
        }
    }
}
