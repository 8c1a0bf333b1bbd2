//! `KEYS` and `ARGV`: what a script is told.
//!
//! A script may change them, and what it does must be gone with it, so each run needs tables of its own. To make and to
//! drop those is most of what a short script costs beside its commands. Yet most scripts do no more with them than to
//! read elements, as their code shows. Such scripts share two tables, which are filled anew for each run.
//!
//! Invariant: a shared table is never in the hands of a script ([`TableUse::of`]). So it has no metatable and no
//! elements but those that are put in here.

use super::sandbox::Globals;
use crate::lua::{GlobalUse, Raise, Reference, Stack};
use crate::resp::Request;

/// Global names by which a script could take the tables in hand: themselves, the table of all names, and the compilers,
/// which give that to what they compile.
const ESCAPES: &[&str] = &["KEYS", "ARGV", "_G", "load", "loadstring"];

/// So many words fit into a shared table, which is as large as that from the beginning.
const SHARED_WORDS: usize = 16;

/// What a script does with what it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableUse {
    /// It reads elements.
    ReadsElements,
    /// Anything.
    Escapes,
}

impl TableUse {
    /// That of a script whose code does this with global names, as far as that can be told.
    pub(super) fn of(global_use: Option<&GlobalUse>) -> TableUse {
        let is_taken = |found: &GlobalUse| ESCAPES.iter().any(|way| found.takes.contains(way.as_bytes()));
        if global_use.is_none_or(is_taken) { TableUse::Escapes } else { TableUse::ReadsElements }
    }
}

/// What scripts are told.
#[derive(Debug)]
pub(super) struct KeysArgv {
    keys: List,
    arguments: List,
    /// The global names have the shared tables as their values.
    is_shared: bool,
}

/// One of the two.
#[derive(Debug)]
struct List {
    /// Its name, as a string of Lua.
    name: Reference,
    shared: Reference,
    /// How many elements the shared table may have.
    length: usize,
}

impl KeysArgv {
    /// Makes the shared tables.
    ///
    /// # Errors
    /// When memory has run out.
    pub(super) fn new(stack: &mut Stack<'_>) -> Result<KeysArgv, Raise> {
        Ok(KeysArgv { keys: List::new(stack, "KEYS")?, arguments: List::new(stack, "ARGV")?, is_shared: false })
    }

    /// Sets `KEYS` and `ARGV` for the run of a script.
    ///
    /// # Errors
    /// When memory has run out.
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

    /// Pushes the shared table, which has these words then and nothing else.
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
