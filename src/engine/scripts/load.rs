//! Loading libraries: from their source, and from what FUNCTION DUMP gave.
//!
//! A library's source runs once, when it is loaded, and offers functions meanwhile. It cannot be put aside:
//! after half a second it ends. Libraries that came with a template are loaded when the first of their functions
//! is called, or others come or go.

use std::sync::Arc;

use super::functions::{Draft, Library, Shelf};
use crate::engine::{Engine, Error};
use crate::rdb;
use crate::script::{LibraryError, Machine, Offered, read_title};

/// How long the source of a library may run.
const LOAD_TIMEOUT_US: u64 = 500_000;

/// What becomes of the libraries that are there when others are restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// They stay, and their names are taken.
    Append,
    /// Those go whose names are needed.
    Replace,
    /// All go.
    Flush,
}

impl Engine {
    /// Loads a library (FUNCTION LOAD), in the place of the one of its name if it replaces. Answers its name.
    ///
    /// # Errors
    /// What is wrong with it; nothing has changed then.
    pub fn load_library(&mut self, source: &[u8], replaces: bool) -> Result<String, Error> {
        self.before_functions_change();
        let mut machine = self.take_function_machine();
        let mut shelf = std::mem::take(&mut self.scripts.functions.shelf);
        let result = self.load_onto(&mut shelf, source, replaces, &mut machine);
        self.scripts.functions.shelf = shelf;
        self.scripts.functions.machine = Some(machine);
        Ok(result?)
    }

    /// Deletes a library (FUNCTION DELETE).
    ///
    /// # Errors
    /// There is none of that name.
    pub fn delete_library(&mut self, name: &[u8]) -> Result<(), Error> {
        self.before_functions_change();
        let functions = &mut self.scripts.functions;
        let (_, library) = functions.shelf.take(name).ok_or(Error::NoLibrary)?;
        if let Some(machine) = &mut functions.machine {
            library.forget(machine);
        }
        Ok(())
    }

    /// All libraries as FUNCTION RESTORE takes them.
    pub fn dump_libraries(&self) -> Vec<u8> {
        let mut payload = rdb::Writer::new(self.settings.rdb_compression);
        for (_, library) in self.scripts.functions.shelf.libraries() {
            payload.byte(rdb::FUNCTION);
            payload.text(&library.source);
        }
        payload.sealed()
    }

    /// Loads the libraries of a payload (FUNCTION RESTORE).
    ///
    /// # Errors
    /// What is wrong with the payload, or with one of its libraries; nothing has changed then.
    pub fn restore_libraries(&mut self, bytes: &[u8], policy: Policy) -> Result<(), Error> {
        let payload = rdb::unsealed(bytes, self.switches.verifies_checksums).ok_or(Error::PayloadWrong)?;
        self.before_functions_change();
        let mut machine = self.take_function_machine();
        let mut shelf = Shelf::default();
        let gone = match self.load_all(&mut shelf, payload, &mut machine) {
            Ok(()) if policy == Policy::Flush => {
                Ok(std::mem::replace(&mut self.scripts.functions.shelf, shelf).empty())
            }
            Ok(()) => self.scripts.functions.shelf.join(shelf, policy == Policy::Replace),
            Err(error) => Err((error, shelf.empty())),
        };
        let (result, gone) = match gone {
            Ok(gone) => (Ok(()), gone),
            Err((error, gone)) => (Err(error), gone),
        };
        gone.into_iter().for_each(|library| library.forget(&mut machine));
        self.scripts.functions.machine = Some(machine);
        Ok(result?)
    }

    /// Puts the libraries of these sources in the place of all others. Those that stay as
    /// they are keep their variables.
    pub(in crate::engine) fn restore_functions(&mut self, sources: Vec<Arc<[u8]>>) {
        let mut machine = self.take_function_machine();
        let mut shelf = std::mem::take(&mut self.scripts.functions.shelf);
        let stays = |library: &Library| sources.contains(&library.source);
        let others = shelf.libraries().filter(|(_, library)| !stays(library));
        for name in others.map(|(name, _)| name.to_owned()).collect::<Vec<_>>() {
            if let Some((_, library)) = shelf.take(name.as_bytes()) {
                library.forget(&mut machine);
            }
        }
        for source in sources {
            if !shelf.libraries().any(|(_, library)| library.source == source) {
                // It was loaded before, so it can be loaded again; one that takes too long now stays away.
                let _ = self.load_onto(&mut shelf, &source, true, &mut machine);
            }
        }
        self.scripts.functions.shelf = shelf;
        self.scripts.functions.machine = Some(machine);
    }

    fn load_all(&mut self, shelf: &mut Shelf, payload: &[u8], machine: &mut Machine) -> Result<(), LibraryError> {
        let mut reader = rdb::Reader::new(payload);
        while let Some(kind) = reader.byte() {
            match kind {
                rdb::FUNCTION => {}
                rdb::EARLY_FUNCTION => return Err(LibraryError::EarlyFormat),
                _ => return Err(LibraryError::NotAFunction),
            }
            let source = reader.text().ok_or(LibraryError::Damaged)?;
            self.load_onto(shelf, &source, false, machine)?;
        }
        Ok(())
    }

    fn load_onto(
        &mut self,
        shelf: &mut Shelf,
        source: &[u8],
        replaces: bool,
        machine: &mut Machine,
    ) -> Result<String, LibraryError> {
        let (name, skipped) = read_title(source)?;
        if !replaces && shelf.contains(&name) {
            return Err(LibraryError::Exists(name));
        }
        let until_us = self.host.elapsed_us().saturating_add(LOAD_TIMEOUT_US);
        self.scripts.functions.draft = Some(Draft { offered: Offered::default(), until_us });
        let loaded = machine.load(self, &source[skipped..]);
        let offered =
            self.scripts.functions.draft.take().map(|draft| draft.offered.into_functions()).unwrap_or_default();
        let library = Library { source: source.into(), functions: offered.into_iter().map(Arc::new).collect() };
        let put = match loaded {
            Ok(()) if library.functions.is_empty() => Err((LibraryError::Empty, library)),
            Ok(()) => shelf.put(name.clone(), library),
            Err(error) => Err((error, library)),
        };
        match put {
            Ok(before) => {
                before.into_iter().for_each(|library| library.forget(machine));
                Ok(name)
            }
            Err((error, library)) => {
                library.forget(machine);
                Err(error)
            }
        }
    }

    /// Loads the libraries that are only described.
    pub fn load_described(&mut self) {
        let functions = &self.scripts.functions;
        if functions.machine.is_none() && functions.shelf.library_count() > 0 {
            self.scripts.functions.machine = Some(self.take_function_machine());
        }
    }

    /// The machine, with all libraries of the shelf.
    pub(super) fn take_function_machine(&mut self) -> Box<Machine> {
        if let Some(machine) = self.scripts.functions.machine.take() {
            return machine;
        }
        let mut machine = Box::new(Machine::for_functions::<Engine>());
        let described = std::mem::take(&mut self.scripts.functions.shelf);
        let mut shelf = Shelf::default();
        for source in described.sources() {
            // It was loaded before, so it can be loaded again; one that takes too long now stays away.
            let _ = self.load_onto(&mut shelf, &source, true, &mut machine);
        }
        self.scripts.functions.shelf = shelf;
        machine
    }
}
