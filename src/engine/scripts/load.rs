//! Loading libraries: from their source, and from what FUNCTION DUMP gave.
//!
//! A library's source runs once, when it is loaded, and offers functions meanwhile. It cannot be put aside:
//! after half a second it ends. Libraries that came with a template are loaded when the first of their functions
//! is called, or others come or go.

use std::sync::Arc;

use super::functions::{FunctionRegistry, Library, PendingLibrary};
use crate::engine::{Engine, Error};
use crate::rdb;
use crate::script::{LibraryError, LuaVm, RegisteredFunctions, read_title};

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
        let mut vm = self.take_function_vm();
        let mut registry = std::mem::take(&mut self.scripts.functions.registry);
        let result = self.load_into(&mut registry, source, replaces, &mut vm);
        self.scripts.functions.registry = registry;
        self.scripts.functions.vm = Some(vm);
        Ok(result?)
    }

    /// Deletes a library (FUNCTION DELETE).
    ///
    /// # Errors
    /// There is none of that name.
    pub fn delete_library(&mut self, name: &[u8]) -> Result<(), Error> {
        self.before_functions_change();
        let functions = &mut self.scripts.functions;
        let (_, library) = functions.registry.take(name).ok_or(Error::NoLibrary)?;
        if let Some(vm) = &mut functions.vm {
            library.forget(vm);
        }
        Ok(())
    }

    /// All libraries as FUNCTION RESTORE takes them.
    pub fn dump_libraries(&self) -> Vec<u8> {
        let mut payload = rdb::Writer::new(self.settings.rdb_compression);
        for (_, library) in self.scripts.functions.registry.libraries() {
            payload.byte(rdb::FUNCTION);
            payload.text(&library.source);
        }
        payload.with_footer()
    }

    /// Loads the libraries of a payload (FUNCTION RESTORE).
    ///
    /// # Errors
    /// What is wrong with the payload, or with one of its libraries; nothing has changed then.
    pub fn restore_libraries(&mut self, bytes: &[u8], policy: Policy) -> Result<(), Error> {
        let payload = rdb::without_footer(bytes, self.switches.verifies_checksums).ok_or(Error::PayloadWrong)?;
        self.before_functions_change();
        let mut vm = self.take_function_vm();
        let mut registry = FunctionRegistry::default();
        let gone = match self.load_all(&mut registry, payload, &mut vm) {
            Ok(()) if policy == Policy::Flush => {
                Ok(std::mem::replace(&mut self.scripts.functions.registry, registry).empty())
            }
            Ok(()) => self.scripts.functions.registry.join(registry, policy == Policy::Replace),
            Err(error) => Err((error, registry.empty())),
        };
        let (result, gone) = match gone {
            Ok(gone) => (Ok(()), gone),
            Err((error, gone)) => (Err(error), gone),
        };
        gone.into_iter().for_each(|library| library.forget(&mut vm));
        self.scripts.functions.vm = Some(vm);
        Ok(result?)
    }

    /// Puts the libraries of these sources in the place of all others. Those that stay as
    /// they are keep their variables.
    pub(in crate::engine) fn restore_functions(&mut self, sources: Vec<Arc<[u8]>>) {
        let mut vm = self.take_function_vm();
        let mut registry = std::mem::take(&mut self.scripts.functions.registry);
        let stays = |library: &Library| sources.contains(&library.source);
        let others = registry.libraries().filter(|(_, library)| !stays(library));
        for name in others.map(|(name, _)| name.to_owned()).collect::<Vec<_>>() {
            if let Some((_, library)) = registry.take(name.as_bytes()) {
                library.forget(&mut vm);
            }
        }
        for source in sources {
            if !registry.libraries().any(|(_, library)| library.source == source) {
                // It was loaded before, so it can be loaded again; one that takes too long now stays away.
                let _ = self.load_into(&mut registry, &source, true, &mut vm);
            }
        }
        self.scripts.functions.registry = registry;
        self.scripts.functions.vm = Some(vm);
    }

    fn load_all(
        &mut self,
        registry: &mut FunctionRegistry,
        payload: &[u8],
        vm: &mut LuaVm,
    ) -> Result<(), LibraryError> {
        let mut reader = rdb::Reader::new(payload);
        while let Some(kind) = reader.byte() {
            match kind {
                rdb::FUNCTION => {}
                rdb::FUNCTION_PRE_GA => return Err(LibraryError::EarlyFormat),
                _ => return Err(LibraryError::NotAFunction),
            }
            let source = reader.text().ok_or(LibraryError::Damaged)?;
            self.load_into(registry, &source, false, vm)?;
        }
        Ok(())
    }

    fn load_into(
        &mut self,
        registry: &mut FunctionRegistry,
        source: &[u8],
        replaces: bool,
        vm: &mut LuaVm,
    ) -> Result<String, LibraryError> {
        let (name, skipped) = read_title(source)?;
        if !replaces && registry.contains(&name) {
            return Err(LibraryError::Exists(name));
        }
        let until_us = self.host.elapsed_us().saturating_add(LOAD_TIMEOUT_US);
        self.scripts.functions.pending = Some(PendingLibrary { registered: RegisteredFunctions::default(), until_us });
        let loaded = vm.load(self, &source[skipped..]);
        let registered = self
            .scripts
            .functions
            .pending
            .take()
            .map(|pending| pending.registered.into_functions())
            .unwrap_or_default();
        let library = Library { source: source.into(), functions: registered.into_iter().map(Arc::new).collect() };
        let put = match loaded {
            Ok(()) if library.functions.is_empty() => Err((LibraryError::Empty, library)),
            Ok(()) => registry.put(name.clone(), library),
            Err(error) => Err((error, library)),
        };
        match put {
            Ok(before) => {
                before.into_iter().for_each(|library| library.forget(vm));
                Ok(name)
            }
            Err((error, library)) => {
                library.forget(vm);
                Err(error)
            }
        }
    }

    /// Loads the libraries that are only described.
    pub fn load_described(&mut self) {
        let functions = &self.scripts.functions;
        if functions.vm.is_none() && functions.registry.library_count() > 0 {
            self.scripts.functions.vm = Some(self.take_function_vm());
        }
    }

    /// The virtual machine, with all libraries of the registry.
    pub(super) fn take_function_vm(&mut self) -> Box<LuaVm> {
        if let Some(vm) = self.scripts.functions.vm.take() {
            return vm;
        }
        let mut vm = Box::new(LuaVm::for_functions::<Engine>());
        let described = std::mem::take(&mut self.scripts.functions.registry);
        let mut registry = FunctionRegistry::default();
        for source in described.sources() {
            // It was loaded before, so it can be loaded again; one that takes too long now stays away.
            let _ = self.load_into(&mut registry, &source, true, &mut vm);
        }
        self.scripts.functions.registry = registry;
        vm
    }
}
