//! Functions: the registry of libraries by name, and of their functions by name in any case.
//!
//! Invariant: a function is in the registry exactly when its library is, and no two have names that differ in case
//! alone. (Redis lets one library offer two such functions, and crashes when it goes.) `bytes` is what all libraries
//! take.
//!
//! While there is a virtual machine, all libraries of the registry are loaded in it. Without one they are only
//! described, and are loaded before the first use: worlds that begin with a template do so at no cost.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::script::{Function, LibraryError, LuaVm, RegisteredFunctions};

/// A loaded library.
#[derive(Debug)]
pub struct Library {
    /// The source of the library.
    pub source: Arc<[u8]>,
    /// The functions of the library, in the order in which it registered them.
    pub functions: Vec<Arc<Function>>,
}

/// Libraries and their functions.
#[derive(Debug, Default)]
pub struct FunctionRegistry {
    libraries: BTreeMap<String, Library>,
    functions: BTreeMap<Vec<u8>, Arc<Function>>,
    bytes: usize,
}

/// All functions, and the virtual machine that runs them.
#[derive(Debug, Default)]
pub struct Functions {
    /// The libraries in force.
    pub registry: FunctionRegistry,
    pub(in crate::engine) vm: Option<Box<LuaVm>>,
    /// The library that is being loaded.
    pub(in crate::engine) pending: Option<PendingLibrary>,
}

/// A library that is being loaded.
#[derive(Debug)]
pub(in crate::engine) struct PendingLibrary {
    pub(in crate::engine) registered: RegisteredFunctions,
    /// The moment at which loading has taken too long, in microseconds of the world's own clock.
    pub(in crate::engine) until_us: u64,
}

impl Functions {
    /// Bytes that the interpreter of functions takes.
    pub fn vm_bytes(&self) -> usize {
        self.vm.as_ref().map_or(0, |vm| vm.memory_bytes())
    }
}

impl FunctionRegistry {
    /// The libraries by their names.
    pub fn libraries(&self) -> impl Iterator<Item = (&str, &Library)> {
        self.libraries.iter().map(|(name, library)| (&**name, library))
    }

    /// The sources of all libraries, by name.
    pub fn sources(&self) -> Vec<Arc<[u8]>> {
        self.libraries.values().map(|library| Arc::clone(&library.source)).collect()
    }

    /// The descriptions of all libraries, without the compiled functions of a virtual machine.
    pub fn described(&self) -> FunctionRegistry {
        let mut registry = FunctionRegistry::default();
        for (name, library) in &self.libraries {
            let functions: Vec<_> = library.functions.iter().map(|function| Arc::new(function.described())).collect();
            let keyed = functions.iter().map(|function| (key_of(&function.name), Arc::clone(function)));
            registry.functions.extend(keyed);
            registry.libraries.insert(name.clone(), Library { source: Arc::clone(&library.source), functions });
        }
        registry.bytes = self.bytes;
        registry
    }

    /// The number of libraries.
    pub fn library_count(&self) -> usize {
        self.libraries.len()
    }

    /// The number of functions.
    pub fn function_count(&self) -> usize {
        self.functions.len()
    }

    /// Bytes that sources and names take. O(1): under `maxmemory` each command reads it.
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// True when a library of that name exists.
    pub fn contains(&self, library: &str) -> bool {
        self.libraries.contains_key(library)
    }

    /// The function of that name, compared without case.
    pub fn find(&self, name: &[u8]) -> Option<&Arc<Function>> {
        // A name in lower case is its own key.
        self.functions.get(name).or_else(|| self.functions.get(&name.to_ascii_lowercase()))
    }

    /// Adds a library whose name is free.
    ///
    /// # Errors
    /// A function with one of its functions' names exists. The library is returned.
    pub fn add(&mut self, name: String, library: Library) -> Result<(), (LibraryError, Library)> {
        let mut added: Vec<Vec<u8>> = Vec::new();
        for function in &library.functions {
            let key = key_of(&function.name);
            if self.functions.contains_key(&key) {
                let error = LibraryError::FunctionExists(function.name.clone());
                added.iter().for_each(|key| drop(self.functions.remove(key)));
                return Err((error, library));
            }
            self.functions.insert(key.clone(), Arc::clone(function));
            added.push(key);
        }
        self.bytes += bytes_of(&name, &library);
        self.libraries.insert(name, library);
        Ok(())
    }

    /// Removes a library and its functions.
    pub fn take(&mut self, name: &[u8]) -> Option<(String, Library)> {
        let (name, library) = self.libraries.remove_entry(std::str::from_utf8(name).ok()?)?;
        for function in &library.functions {
            self.functions.remove(function.name.to_ascii_lowercase().as_bytes());
        }
        self.bytes -= bytes_of(&name, &library);
        Some((name, library))
    }

    /// Restores a library that was just removed, before anything was added.
    fn put_back(&mut self, taken: Vec<(String, Library)>) {
        for (name, library) in taken {
            self.add(name, library).expect("its names are free, as it was just taken away");
        }
    }

    /// Adds a library, which may replace the one of its name. Returns the replaced one.
    ///
    /// # Errors
    /// A function's name is taken. Nothing has changed then, and the library is returned.
    pub fn put(&mut self, name: String, library: Library) -> Result<Option<Library>, (LibraryError, Library)> {
        let before = self.take(name.as_bytes());
        match self.add(name, library) {
            Ok(()) => Ok(before.map(|(_, library)| library)),
            Err(refused) => {
                self.put_back(before.into_iter().collect());
                Err(refused)
            }
        }
    }

    /// Adds all libraries of another registry, which may replace those of the same names. Returns the replaced ones.
    ///
    /// # Errors
    /// A name is taken. Nothing has changed then, and the other registry's libraries are returned.
    pub fn join(
        &mut self,
        mut other: FunctionRegistry,
        replaces: bool,
    ) -> Result<Vec<Library>, (LibraryError, Vec<Library>)> {
        let mut taken = Vec::new();
        for name in other.libraries.keys().filter(|name| self.contains(name)).cloned().collect::<Vec<_>>() {
            if !replaces {
                return Err((LibraryError::RestoredExists(name), other.empty()));
            }
            taken.extend(self.take(name.as_bytes()));
        }
        if let Some((_, function)) = other.functions.iter().find(|(key, _)| self.functions.contains_key(*key)) {
            let error = LibraryError::FunctionExists(function.name.clone());
            self.put_back(taken);
            return Err((error, other.empty()));
        }
        self.libraries.append(&mut other.libraries);
        self.functions.append(&mut other.functions);
        self.bytes += std::mem::take(&mut other.bytes);
        Ok(taken.into_iter().map(|(_, library)| library).collect())
    }

    /// Removes all libraries.
    pub fn empty(&mut self) -> Vec<Library> {
        self.functions.clear();
        self.bytes = 0;
        std::mem::take(&mut self.libraries).into_values().collect()
    }
}

/// Bytes that the source and the names of a library take, with the registry's entries for them.
fn bytes_of(name: &str, library: &Library) -> usize {
    let functions = library.functions.iter().map(|function| size_of::<(Vec<u8>, Function)>() + 2 * function.name.len());
    size_of::<(String, Library)>() + name.len() + library.source.len() + functions.sum::<usize>()
}

/// The key of a function's name in the registry, the same in any case.
fn key_of(name: &str) -> Vec<u8> {
    name.to_ascii_lowercase().into_bytes()
}

impl Library {
    /// Frees the library's functions in a virtual machine, after the library was removed.
    pub(in crate::engine) fn forget(self, vm: &mut LuaVm) {
        for function in self.functions.into_iter().filter_map(Arc::into_inner) {
            function.into_callback().into_iter().for_each(|callback| vm.forget(callback));
        }
    }
}
