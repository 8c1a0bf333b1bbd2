//! Running scripts and functions, and their calls of commands.
//!
//! In this module, "script" includes functions.
//!
//! A script is one step: no other client's command runs within it, blocked clients are served after it, and time stands
//! still for it: keys exist or have expired as when it began, and TIME returns that moment. If it takes longer than
//! `busy-reply-threshold` it is suspended between two instructions again and again, so that other clients get the
//! reply that the server is busy, and can kill the script if it has changed nothing yet.
//!
//! A virtual machine is moved out of the engine while it runs, since its script calls back into the engine.

mod calls;
pub mod load;
pub mod run;

pub use load::Policy;
pub use run::{Call, FunctionCall, suspend_transaction_at};

use crate::engine::Engine;
use crate::engine::exec::snapshots;
use crate::engine::spec::Now;
use crate::engine::state::Scripts;
use crate::keyspace::LazyFree;
use crate::script::LuaVm;

/// Removes all functions. Large libraries are freed on another thread, like large values.
pub fn flush_functions(engine: &mut Engine) {
    snapshots::before_functions_change(engine);
    let mut functions = std::mem::take(&mut engine.scripts.functions);
    if let Some(mut vm) = functions.vm.take_if(|vm| vm.renew()) {
        functions.registry.empty().into_iter().for_each(|library| library.forget(&mut vm));
        engine.scripts.functions.vm = Some(vm);
    }
    let bytes = functions.registry.memory_bytes() + functions.vm_bytes();
    engine.free(LazyFree::of(functions, bytes));
}

/// The time that TIME returns.
pub fn shown_now(engine: &Engine) -> Now {
    engine.scripts.running.as_ref().map_or_else(|| engine.now(), |running| running.time_shown)
}

/// Removes all scripts. Many of them, with what they compiled to, are freed on another thread, like a large value.
pub fn flush_scripts(engine: &mut Engine) {
    snapshots::before_scripts_change(engine);
    let flushed = engine.scripts.cache.flushed();
    let mut cache = std::mem::replace(&mut engine.scripts.cache, flushed);
    let mut vm = engine.scripts.vm.take();
    if let Some(mut vm) = vm.take_if(|vm| vm.renew()) {
        cache.forget_all(&mut vm);
        engine.scripts.vm = Some(vm);
    }
    let bytes = cache.memory_bytes() + vm.as_ref().map_or(0, |vm| vm.memory_bytes());
    engine.free(LazyFree::of((cache, vm), bytes));
}

pub(super) fn take_vm(scripts: &mut Scripts) -> Box<LuaVm> {
    scripts.vm.take().unwrap_or_else(|| {
        scripts.cache.uncompile();
        Box::new(LuaVm::new::<Engine>())
    })
}
