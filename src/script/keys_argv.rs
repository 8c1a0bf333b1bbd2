//! `KEYS` and `ARGV`: the tables of a script's arguments.
//!
//! A script may change them, and its changes must not be visible to the next run, so each run needs fresh tables.
//! Creating and dropping those is most of the cost of a short script apart from its commands. Yet most scripts only
//! read elements of them, as their code shows. Such scripts share two tables, which are filled anew for each run.
//!
//! Invariant: a script never has a reference to a shared table ([`TableUse::of`]). So the table has no metatable and
//! no elements but those that are stored here.

use super::sandbox::Globals;
use crate::lua::{GlobalUse, Raise, Reference, Stack};
use crate::resp::Request;

/// Global names by which a script could get a reference to the tables: their own, the table of all names, and the
/// compilers, which give that table to the code that they compile.
const ESCAPES: &[&str] = &["KEYS", "ARGV", "_G", "load", "loadstring"];

/// The most words of a shared table, which has that capacity from the beginning.
const SHARED_WORDS: usize = 16;

/// The use of `KEYS` and `ARGV` in a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableUse {
    /// The script only reads their elements.
    ReadsElements,
    /// The script may use the tables in any way.
    Escapes,
}

impl TableUse {
    /// The use by a script whose code uses global names so, as far as that is known.
    pub(super) fn of(global_use: Option<&GlobalUse>) -> TableUse {
        let is_taken = |found: &GlobalUse| ESCAPES.iter().any(|way| found.takes.contains(way.as_bytes()));
        if global_use.is_none_or(is_taken) { TableUse::Escapes } else { TableUse::ReadsElements }
    }
}

/// The tables of the scripts' arguments.
#[derive(Debug)]
pub(super) struct KeysArgv {
    keys: List,
    arguments: List,
    /// Whether the global names have the shared tables as their values.
    is_shared: bool,
}

/// One of the tables `KEYS` and `ARGV`.
#[derive(Debug)]
struct List {
    /// The global name, as a string of Lua.
    name: Reference,
    shared: Reference,
    /// The greatest number of elements that the shared table may have.
    length: usize,
}

impl KeysArgv {
    /// Makes the shared tables.
    ///
    /// # Errors
    /// If memory has run out.
    pub(super) fn new(stack: &mut Stack<'_>) -> Result<KeysArgv, Raise> {
        Ok(KeysArgv { keys: List::new(stack, "KEYS")?, arguments: List::new(stack, "ARGV")?, is_shared: false })
    }

    /// Sets `KEYS` and `ARGV` for the run of a script.
    ///
    /// # Errors
    /// If memory has run out.
    pub(super) fn set(
        &mut self,
        stack: &mut Stack<'_>,
        globals: &Globals,
        table_use: TableUse,
        keys: Request<'_>,
        arguments: Request<'_>,
    ) -> Result<(), Raise> {
        let is_shared = table_use == TableUse::ReadsElements && keys.len().max(arguments.len()) <= SHARED_WORDS;
        let lists = [(&mut self.keys, keys), (&mut self.arguments, arguments)];
        if is_shared && self.is_shared {
            return lists.into_iter().try_for_each(|(list, words)| list.refill(stack, words));
        }
        self.is_shared = false;
        globals.push_target(stack);
        for (list, words) in lists {
            stack.push_ref(&list.name);
            if is_shared {
                list.refill(stack, words)?;
            } else {
                stack.push_list(words.iter())?;
            }
            stack.set(-3)?;
        }
        self.is_shared = is_shared;
        Ok(())
    }
}

impl List {
    fn new(stack: &mut Stack<'_>, name: &str) -> Result<List, Raise> {
        stack.push_plain(name.as_bytes());
        let name = stack.make_ref();
        stack.push_table(SHARED_WORDS, 0)?;
        Ok(List { name, shared: stack.make_ref(), length: 0 })
    }

    /// Pushes the shared table, filled with exactly these words.
    fn refill(&mut self, stack: &mut Stack<'_>, words: Request<'_>) -> Result<(), Raise> {
        let before = self.length;
        self.length = before.max(words.len());
        stack.push_ref(&self.shared);
        stack.fill(words.iter())?;
        for number in words.len() + 1..=before {
            stack.push_nil();
            stack.set_element(-2, number)?;
        }
        self.length = words.len();
        Ok(())
    }
}
