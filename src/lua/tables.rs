//! Tables: creating, reading, changing and walking them through a [`Stack`].
//!
//! A table that is walked must not change, since the walk would lose its position: the methods that change one assert
//! that.

use std::ffi::c_int;

use mlua_sys as ffi;

use super::stack::{Path, index};
use super::{Kind, OUT_OF_MEMORY, Raise, Reference, Scalar, Stack, calls};

/// Tables. Only [`Stack::look_up`] calls a metatable.
impl Stack<'_> {
    /// Pushes a table with room for that many elements and fields.
    ///
    /// # Errors
    /// If memory has run out.
    pub fn push_table(&mut self, elements: usize, fields: usize) -> Result<(), Raise> {
        self.obtain(elements.saturating_add(fields.saturating_mul(3)).saturating_mul(16))?;
        self.ensure(1);
        let (elements, fields) = (c_int::try_from(elements), c_int::try_from(fields));
        let (Ok(elements), Ok(fields)) = (elements, fields) else { return Err(Raise::text(OUT_OF_MEMORY)) };
        // SAFETY: there is room for one value and memory for the table; while Rust code runs, the allocation does not
        // fail.
        unsafe { ffi::lua_createtable(self.raw(), elements, fields) };
        Ok(())
    }

    /// Pushes a table of strings.
    ///
    /// # Errors
    /// If memory has run out; the table may then be on the stack, without some of them.
    pub fn push_list<'w>(&mut self, words: impl ExactSizeIterator<Item = &'w [u8]>) -> Result<(), Raise> {
        self.push_table(words.len(), 0)?;
        self.fill(words)
    }

    /// Stores strings as the first elements of the table on top.
    ///
    /// # Errors
    /// If memory has run out; the table may then have some of them.
    pub fn fill<'w>(&mut self, words: impl Iterator<Item = &'w [u8]>) -> Result<(), Raise> {
        self.assert_table(-1);
        self.assert_at_rest();
        for (number, word) in (1..).zip(words) {
            self.push_bytes(word)?;
            // SAFETY: the table is below the string.
            unsafe { ffi::lua_rawseti_(self.raw(), -2, number) };
        }
        Ok(())
    }

    /// Pushes a table with one field, a string.
    ///
    /// # Errors
    /// If memory has run out; the table may then be on the stack, without the field.
    pub fn push_record(&mut self, name: &str, text: &[u8]) -> Result<(), Raise> {
        self.push_table(0, 1)?;
        self.push_plain(name.as_bytes());
        self.push_bytes(text)?;
        // SAFETY: below the two strings is the table that was made above.
        unsafe { ffi::lua_rawset(self.raw(), -3) };
        Ok(())
    }

    pub(super) fn assert_table(&self, at: i32) {
        assert!(self.kind(at) == Kind::Table, "the index is that of a table");
    }

    pub(super) fn assert_at_rest(&self) {
        assert!(self.walks == 0 && self.paths.is_empty(), "a table that is walked must not change");
    }

    /// Replaces the key on top by its value.
    pub fn get(&mut self, table: i32) {
        self.assert_table(table);
        assert!(index(self.top()) > self.floor(), "the key on top may be replaced");
        // SAFETY: the index is that of a table and a key is on top, as asserted; a raw read raises no error.
        unsafe { ffi::lua_rawget(self.raw(), table) };
    }

    /// Pushes the value of a field.
    pub fn get_field(&mut self, table: i32, name: &str) {
        let table = self.absolute(table);
        self.push_plain(name.as_bytes());
        self.get(table);
    }

    /// Pushes the value of a field of the table on top, whose name is a reference, unless that is nil; returns whether
    /// it did.
    pub fn find_field(&mut self, name: &Reference) -> bool {
        self.assert_table(-1);
        self.ensure(1);
        // SAFETY: the top is a table, as asserted, and there is room for the name, which the value then replaces; raw
        // reads raise no error.
        unsafe {
            ffi::lua_rawgeti_(self.raw(), ffi::LUA_REGISTRYINDEX, name.0);
            ffi::lua_rawget(self.raw(), -2);
            let is_there = ffi::lua_type(self.raw(), -1) != ffi::LUA_TNIL;
            if !is_there {
                ffi::lua_settop(self.raw(), -2);
            }
            is_there
        }
    }

    /// Pushes an element, counted from 1.
    pub fn get_element(&mut self, table: i32, number: usize) {
        self.assert_table(table);
        self.ensure(1);
        let Ok(number) = c_int::try_from(number) else { return self.push_nil() };
        // SAFETY: the index is that of a table, as asserted, and there is room for one value; a raw read raises no
        // error.
        unsafe { ffi::lua_rawgeti_(self.raw(), table, number) };
    }

    /// Reads the elements of the table on top from the one at `first` on, up to the first that is neither text nor
    /// number, which is pushed. Returns its number.
    ///
    /// # Errors
    /// Those of `read`; the element that it refused is on the stack then.
    pub fn read_elements(
        &mut self,
        first: usize,
        mut read: impl FnMut(&Self, Scalar<'_>) -> Result<(), Raise>,
    ) -> Result<usize, Raise> {
        self.get_element(-1, first);
        let mut number = first;
        loop {
            match self.scalar_on_top() {
                Scalar::Other(_) => return Ok(number),
                element => read(self, element)?,
            }
            number += 1;
            let Ok(next) = c_int::try_from(number) else { return Err(Raise::text("table overflow")) };
            // SAFETY: on top is the element that was read, which is popped, and below it the table; the next element
            // takes its place.
            unsafe {
                ffi::lua_settop(self.raw(), -2);
                ffi::lua_rawgeti_(self.raw(), -1, next);
            }
        }
    }

    /// Sets the entry of the key below the top to the value on top, and pops both.
    ///
    /// # Errors
    /// If the key is nil or NaN, or memory has run out.
    pub fn set(&mut self, table: i32) -> Result<(), Raise> {
        self.assert_table(table);
        self.assert_at_rest();
        match self.kind(-2) {
            Kind::Nil => return Err(Raise::text("table index is nil")),
            Kind::Number if self.number(-2).is_some_and(f64::is_nan) => {
                return Err(Raise::text("table index is NaN"));
            }
            _ => {}
        }
        self.check_memory(0)?;
        // SAFETY: the index is that of a table that is not being walked, as asserted. The key is neither nil nor NaN,
        // and memory does not fail while Rust code runs, so no error is raised.
        unsafe { ffi::lua_rawset(self.raw(), table) };
        Ok(())
    }

    /// Sets a field to the value on top, and pops that.
    ///
    /// # Errors
    /// If memory has run out.
    pub fn set_field(&mut self, table: i32, name: &str) -> Result<(), Raise> {
        let table = self.absolute(table);
        self.assert_table(table);
        self.assert_at_rest();
        self.check_memory(0)?;
        self.push_plain(name.as_bytes());
        // SAFETY: the value is below the name; a name is a key that every table accepts.
        unsafe {
            ffi::lua_insert(self.raw(), -2);
            ffi::lua_rawset(self.raw(), table);
        }
        Ok(())
    }

    /// Sets an element, counted from 1, to the value on top, and pops that.
    ///
    /// # Errors
    /// If memory has run out, or the number is too large.
    pub fn set_element(&mut self, table: i32, number: usize) -> Result<(), Raise> {
        self.assert_table(table);
        self.assert_at_rest();
        self.check_memory(0)?;
        let number = c_int::try_from(number).map_err(|_| Raise::text("table overflow"))?;
        // SAFETY: the index is that of a table that is not being walked, as asserted, and callers have pushed the
        // value; memory does not fail while Rust code runs, so no error is raised.
        unsafe { ffi::lua_rawseti_(self.raw(), table, number) };
        Ok(())
    }

    /// Calls `act` for each entry, its key below its value on top. Meanwhile no table may change, and no Lua code may
    /// run.
    ///
    /// # Errors
    /// Those of `act`, which end the walk.
    pub fn each(&mut self, table: i32, mut act: impl FnMut(&mut Self) -> Result<(), Raise>) -> Result<(), Raise> {
        self.assert_table(table);
        self.reserve(3)?;
        let table = self.absolute(table);
        let start = self.top();
        self.walks += 1;
        self.push_nil();
        let mut result = Ok(());
        // SAFETY: the key on top is nil or one that `lua_next` returned, and as no table has changed since, it is
        // valid.
        while result.is_ok() && unsafe { ffi::lua_next(self.raw(), table) != 0 } {
            result = act(self);
            if result.is_ok() {
                self.truncate(start + 1);
            }
        }
        self.walks -= 1;
        result
    }

    /// Begins to walk a table without a closure, so that tables in it can be walked too, however deep they nest.
    /// Until [`Stack::next`] has come to its end, or [`Stack::leave`], no table may change, and no Lua code may run.
    ///
    /// # Errors
    /// If the stack is full.
    pub fn walk(&mut self, table: i32) -> Result<(), Raise> {
        self.assert_table(table);
        self.reserve(3)?;
        let table = self.absolute(table);
        self.push_nil();
        self.paths.push(Path { table, key: index(self.top()) });
        Ok(())
    }

    /// Continues the innermost walk: pops the values above its key, and pushes the next key and its value in place of
    /// the key. False at its end.
    #[expect(clippy::should_implement_trait, reason = "what it goes through are tables of Lua")]
    pub fn next(&mut self) -> bool {
        let Some(path) = self.paths.last().copied() else { return false };
        // SAFETY: the key on top is nil or one that `lua_next` returned: `floor` and the assertions of `replace` keep
        // its position and the table's unchanged. As no table has changed since, the key is valid.
        let is_there = unsafe {
            ffi::lua_settop(self.raw(), path.key);
            ffi::lua_next(self.raw(), path.table) != 0
        };
        if !is_there {
            self.paths.pop();
        }
        is_there
    }

    /// Ends the innermost walk, and pops its key and the values above.
    pub fn leave(&mut self) {
        if let Some(path) = self.paths.pop() {
            // SAFETY: the key's index is within the stack.
            unsafe { ffi::lua_settop(self.raw(), path.key - 1) };
        }
    }

    /// Replaces the key on top by the value that a script would find there, by way of the table's metatable; or by
    /// the error of that, and returns false.
    pub fn look_up(&mut self, table: i32) -> bool {
        self.assert_at_rest();
        assert!(index(self.top()) > self.floor(), "the key on top may be replaced");
        self.ensure(2);
        let table = self.absolute(table);
        // SAFETY: there is room. The call takes the function, the table and the key, and catches errors.
        unsafe {
            ffi::lua_pushcfunction(self.raw(), calls::look_up);
            ffi::lua_insert(self.raw(), -2);
            ffi::lua_pushvalue(self.raw(), self.valid(table));
            ffi::lua_insert(self.raw(), -2);
        }
        self.call(2, Some(1))
    }

    /// Pushes a table that lists the keys and values of another alternately; returns the number of pairs.
    ///
    /// # Errors
    /// If memory has run out; the stack then has values that the caller must pop.
    pub fn push_entries(&mut self, table: i32) -> Result<usize, Raise> {
        self.assert_table(table);
        self.reserve(4)?;
        let table = self.absolute(table);
        self.push_table(0, 0)?;
        let (entries, mut count) = (self.absolute(-1), 0);
        self.push_nil();
        // SAFETY: the key on top is nil or one that `lua_next` returned, and that table does not change meanwhile.
        while unsafe { ffi::lua_next(self.raw(), table) != 0 } {
            self.push_copy(-2);
            self.set_element(entries, count * 2 + 1)?;
            self.set_element(entries, count * 2 + 2)?;
            count += 1;
        }
        Ok(count)
    }

    /// Removes the value below the top.
    pub fn remove_below(&mut self) {
        let below = index(self.top()) - 1;
        assert!(below > self.floor(), "the arguments of a call must not move");
        // SAFETY: the index is that of a value below the top and above the floor, as asserted.
        unsafe { ffi::lua_remove(self.raw(), below) };
    }

    /// Pushes the value's metatable; false, with nothing pushed, if it has none.
    pub fn get_metatable(&mut self, at: i32) -> bool {
        self.ensure(1);
        // SAFETY: there is room for one value, and the index is valid, or reads as no value.
        unsafe { ffi::lua_getmetatable(self.raw(), self.valid(at)) != 0 }
    }

    /// Pops the table on top and makes it the metatable of the value at `at`.
    pub fn set_metatable(&mut self, at: i32) {
        self.assert_table(-1);
        self.assert_at_rest();
        // SAFETY: the top is a table that is not being walked, as asserted; the call only stores it, and allocation
        // does not fail while Rust code runs.
        unsafe { ffi::lua_setmetatable(self.raw(), at) };
    }
}
