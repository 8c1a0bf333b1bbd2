//! Loading libraries of functions: from their source (FUNCTION LOAD) and from payloads (FUNCTION RESTORE).
//!
//! A library's source runs once, when it is loaded, and registers functions then. It cannot be suspended: after half a
//! second it fails. Libraries that came with a template are loaded when the first of their functions is called, or
//! when libraries are added or removed.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::exec::snapshots;
use crate::engine::spec::{Error, FunctionError};
use crate::engine::state::scripts::functions::PendingLibrary;
use crate::engine::state::scripts::{FunctionRegistry, Library};
use crate::rdb;
use crate::script::{LibraryError, LuaVm, RegisteredFunctions, read_title};

/// The most time that the source of a library may run.
const LOAD_TIMEOUT_US: u64 = 500_000;

/// The policy of FUNCTION RESTORE for existing libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Existing libraries stay, and a restored one of the same name is an error (APPEND).
    Append,
    /// Existing libraries of the same names are replaced (REPLACE).
    Replace,
    /// All existing libraries are removed (FLUSH).
    Flush,
}

/// Loads a library (FUNCTION LOAD), which may replace the one of its name. Returns its name.
///
/// # Errors
/// The fault in the library; nothing has changed then.
pub fn load_library(engine: &mut Engine, source: &[u8], replaces: bool) -> Result<String, Error> {
    snapshots::before_functions_change(engine);
    let mut vm = take_function_vm(engine);
    let mut registry = std::mem::take(&mut engine.scripts.functions.registry);
    let result = load_into(engine, &mut registry, source, replaces, &mut vm);
    engine.scripts.functions.registry = registry;
    engine.scripts.functions.vm = Some(vm);
    Ok(result?)
}

/// Loads a library of an RDB file.
///
/// # Errors
/// Why the file cannot be loaded, in Redis's words.
pub fn load_saved_library(engine: &mut Engine, source: &[u8], replaces: bool) -> Result<(), String> {
    let loaded = load_library(engine, source, replaces);
    loaded
        .map(drop)
        .map_err(|error| format!("Failed loading library, {}", error.to_string().trim_start_matches("ERR ")))
}

/// Deletes a library (FUNCTION DELETE).
///
/// # Errors
/// There is no library of that name.
pub fn delete_library(engine: &mut Engine, name: &[u8]) -> Result<(), Error> {
    snapshots::before_functions_change(engine);
    let functions = &mut engine.scripts.functions;
    let (_, library) = functions.registry.take(name).ok_or(FunctionError::NoLibrary)?;
    if let Some(vm) = &mut functions.vm {
        library.forget(vm);
    }
    Ok(())
}

/// The payload of all libraries, for FUNCTION RESTORE (FUNCTION DUMP).
pub fn dump_libraries(engine: &Engine) -> Vec<u8> {
    let mut payload = rdb::Writer::new(engine.settings.files.compresses);
    for (_, library) in engine.scripts.functions.registry.libraries() {
        payload.byte(rdb::FUNCTION);
        payload.text(&library.source);
    }
    payload.with_footer()
}

/// Loads the libraries of a payload (FUNCTION RESTORE).
///
/// # Errors
/// The fault in the payload, or in one of its libraries; nothing has changed then.
pub fn restore_libraries(engine: &mut Engine, bytes: &[u8], policy: Policy) -> Result<(), Error> {
    let payload = rdb::without_footer(bytes, engine.switches.verifies_checksums).ok_or(Error::PayloadWrong)?;
    snapshots::before_functions_change(engine);
    let mut vm = take_function_vm(engine);
    let mut registry = FunctionRegistry::default();
    let gone = match load_all(engine, &mut registry, payload, &mut vm) {
        Ok(()) if policy == Policy::Flush => {
            Ok(std::mem::replace(&mut engine.scripts.functions.registry, registry).empty())
        }
        Ok(()) => engine.scripts.functions.registry.join(registry, policy == Policy::Replace),
        Err(error) => Err((error, registry.empty())),
    };
    let (result, gone) = match gone {
        Ok(gone) => (Ok(()), gone),
        Err((error, gone)) => (Err(error), gone),
    };
    gone.into_iter().for_each(|library| library.forget(&mut vm));
    engine.scripts.functions.vm = Some(vm);
    Ok(result?)
}

/// Replaces all libraries by those of these sources. Libraries that do not change keep their variables.
pub(in crate::engine) fn restore_functions(engine: &mut Engine, sources: Vec<Arc<[u8]>>) {
    if sources.is_empty() && engine.scripts.functions.registry.library_count() == 0 {
        return;
    }
    let mut vm = take_function_vm(engine);
    let mut registry = std::mem::take(&mut engine.scripts.functions.registry);
    let stays = |library: &Library| sources.contains(&library.source);
    let others = registry.libraries().filter(|(_, library)| !stays(library));
    for name in others.map(|(name, _)| name.to_owned()).collect::<Vec<_>>() {
        if let Some((_, library)) = registry.take(name.as_bytes()) {
            library.forget(&mut vm);
        }
    }
    for source in sources {
        if !registry.libraries().any(|(_, library)| library.source == source) {
            // It was loaded before, so it can be loaded again; one that takes too long now is left out.
            let _ = load_into(engine, &mut registry, &source, true, &mut vm);
        }
    }
    engine.scripts.functions.registry = registry;
    engine.scripts.functions.vm = Some(vm);
}

fn load_all(
    engine: &mut Engine,
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
        load_into(engine, registry, &source, false, vm)?;
    }
    Ok(())
}

fn load_into(
    engine: &mut Engine,
    registry: &mut FunctionRegistry,
    source: &[u8],
    replaces: bool,
    vm: &mut LuaVm,
) -> Result<String, LibraryError> {
    let (name, skipped) = read_title(source)?;
    if !replaces && registry.contains(&name) {
        return Err(LibraryError::Exists(name));
    }
    let until_us = engine.host.elapsed_us().saturating_add(LOAD_TIMEOUT_US);
    engine.scripts.functions.pending = Some(PendingLibrary { registered: RegisteredFunctions::default(), until_us });
    let loaded = vm.load(engine, &source[skipped..]);
    let registered =
        engine.scripts.functions.pending.take().map(|pending| pending.registered.into_functions()).unwrap_or_default();
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

/// Loads the libraries of which only the description is known.
pub fn load_described(engine: &mut Engine) {
    let functions = &engine.scripts.functions;
    if functions.vm.is_none() && functions.registry.library_count() > 0 {
        engine.scripts.functions.vm = Some(take_function_vm(engine));
    }
}

/// The virtual machine, with all libraries of the registry.
pub(super) fn take_function_vm(engine: &mut Engine) -> Box<LuaVm> {
    if let Some(vm) = engine.scripts.functions.vm.take() {
        return vm;
    }
    let mut vm = Box::new(LuaVm::for_functions::<Engine>());
    let described = std::mem::take(&mut engine.scripts.functions.registry);
    let mut registry = FunctionRegistry::default();
    for source in described.sources() {
        // It was loaded before, so it can be loaded again; one that takes too long now is left out.
        let _ = load_into(engine, &mut registry, &source, true, &mut vm);
    }
    engine.scripts.functions.registry = registry;
    vm
}
