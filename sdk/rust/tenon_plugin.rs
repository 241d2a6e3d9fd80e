//! Tenon's plugin interface for Rust, without crates: layers with recorded bodies and native kernels, costs, metrics,
//! updaters, and readers of dense samples. Needs Rust 1.61.
//!
//!   rustc --edition 2021 -O --crate-type rlib --crate-name tenon_plugin .../share/tenon/sdk/rust/tenon_plugin.rs
//!   rustc --edition 2021 -O -C strip=symbols --crate-type cdylib --extern tenon_plugin=libtenon_plugin.rlib mine.rs
//!   tenon plugins seal libmine.so
//!
//! A component is a type that implements `Layer`, `Kernel`, `Updater` or `Reader`; the macros `layer!`, `kernel!`,
//! `updater!` and `reader!` make its table, and `plugin!` the descriptor. A panic in any callback, also in a task of
//! the host's threads, becomes a report to the host and ends the call alone, and so does memory that runs out
//! (`memory.rs`, which sets the global allocator): what is as large as the data should grow by `push`, `extend` and
//! `read_text`. Functions return `Done`, whose failure names what is wrong. What
//! this binding does not wrap is in the C headers; `tables.rs` has their structs.
//! SPDX-License-Identifier: MIT
mod failure;
mod kernel;
mod layer;
mod memory;
mod program;
mod reader;
mod tables;
mod updater;
mod values;

pub use failure::*;
pub use kernel::*;
pub use layer::*;
pub use memory::{extend, push, read_file, read_text, reserve};
pub use program::*;
pub use reader::*;
pub use tables::*;
pub use updater::*;
pub use values::*;

#[cfg(not(panic = "unwind"))]
compile_error!("a panic must not end the process: -C panic=unwind");

/// Room for the manifest, which `tenon plugins seal` fills in: TN_RESERVE_NOTE of tenon/plugin.h.
#[repr(C, align(4))]
pub struct Note<const BYTES: usize> {
    owner_bytes: u32,
    text_bytes: u32,
    kind: u32,
    owner: [u8; 8],
    text: [u8; BYTES],
}
impl<const BYTES: usize> Note<BYTES> {
    pub const fn reserved() -> Self {
        Note { owner_bytes: 6, text_bytes: BYTES as u32, kind: NOTE_RESERVED, owner: *b"Tenon\0\0\0", text: [0; BYTES] }
    }
}

/// The bytes of the note: 4096, or the number in the variable TENON_NOTE_BYTES of the compiler's environment, rounded up
/// to a multiple of 4. tenon_add_plugin states what the manifest needs.
pub const fn note_bytes(stated: Option<&str>) -> usize {
    let digits = match stated {
        Some(text) => text.as_bytes(),
        None => return 4096,
    };
    let mut bytes = 0;
    let mut at = 0;
    while at < digits.len() {
        assert!(digits[at].is_ascii_digit(), "TENON_NOTE_BYTES is not a number");
        bytes = bytes * 10 + (digits[at] - b'0') as usize;
        at += 1;
    }
    (bytes + 3) / 4 * 4
}

/// Pointers to tables, as the C tables hold them.
pub struct List<T> {
    pub items: *const *const T,
    pub count: u32,
}

/// A text of a table: a literal with a NUL behind it.
#[macro_export]
macro_rules! text {
    ($text:expr) => {
        concat!($text, "\0").as_ptr() as $crate::Text
    };
}
/// Makes static tables of a type, and the list of them.
#[macro_export]
macro_rules! list {
    ($type:ty; $($item:expr),*) => {{
        const COUNT: usize = {
            let names: &[&str] = &[$(stringify!($item)),*];
            names.len()
        };
        static ITEMS: $crate::Table<[*const $type; COUNT]> = $crate::Table([$({
            static ITEM: $crate::Table<$type> = $crate::Table($item);
            &ITEM.0 as *const $type
        }),*]);
        $crate::List { items: &ITEMS.0 as *const [*const $type; COUNT] as *const *const $type, count: COUNT as u32 }
    }};
}
/// Makes the list of tables that are there already.
#[macro_export]
macro_rules! listed {
    ($type:ty; $($table:ident),*) => {{
        const COUNT: usize = {
            let names: &[&str] = &[$(stringify!($table)),*];
            names.len()
        };
        static ITEMS: $crate::Table<[*const $type; COUNT]> = $crate::Table([$(&$table.0 as *const $type),*]);
        $crate::List { items: &ITEMS.0 as *const [*const $type; COUNT] as *const *const $type, count: COUNT as u32 }
    }};
}

/// Makes the descriptor from the tables of the components, the note, and the one symbol that a plugin exports:
///
///   plugin! { "vendor.name", "1.0.0", "one line", "MIT", layers [LAYER], kernels [], updaters [], readers [] }
///
/// At the end may stand what a plugin set may set, `options [Attribute::int(text!("limit"), text!("bytes"), 64)]`, which
/// `options` of a site or an opening reads.
#[macro_export]
macro_rules! plugin {
    ($id:literal, $version:literal, $doc:literal, $license:literal, layers [$($layer:ident),*],
     kernels [$($kernel:ident),*], updaters [$($updater:ident),*], readers [$($reader:ident),*]
     $(, options [$($option:expr),* $(,)?])?) => {
        static PLUGIN: $crate::Table<$crate::Plugin> = $crate::Table({
            const NOTHING: $crate::Unused = std::ptr::null();
            let layers = $crate::listed!($crate::LayerType; $($layer),*);
            let kernels = $crate::listed!($crate::KernelTable; $($kernel),*);
            let updaters = $crate::listed!($crate::UpdaterType; $($updater),*);
            let readers = $crate::listed!($crate::ReaderType; $($reader),*);
            let options = $crate::list!($crate::Attribute; $($($option),*)?);
            $crate::Plugin {
                size: std::mem::size_of::<$crate::Plugin>() as u32,
                reserved: 0,
                abi: $crate::Abi {
                    major: $crate::ABI_MAJOR,
                    built: $crate::ABI_MINOR,
                    // Options are all that is used of what was appended after 0.2.
                    required: if options.count > 0 { 3 } else { 2 },
                    reserved: 0,
                },
                id: $crate::text!($id),
                version: $crate::text!($version),
                doc: $crate::text!($doc),
                license: $crate::text!($license),
                isa: $crate::text!(""),
                layers_count: layers.count,
                kernels_count: kernels.count,
                layers: layers.items,
                kernels: kernels.items,
                updaters_count: updaters.count,
                readers_count: readers.count,
                updaters: updaters.items,
                readers: readers.items,
                devices_count: 0,
                libraries_count: 0,
                devices: NOTHING,
                libraries: NOTHING,
                providers_count: 0,
                reserved2: 0,
                providers: NOTHING,
                options_count: options.count,
                reserved3: 0,
                options: options.items,
                requirements_count: 0,
                reserved4: 0,
                requirements: NOTHING,
                comms_count: 0,
                arithmetic: 0,
                comms: NOTHING,
            }
        });

        #[used]
        #[link_section = ".note.tenon"]
        static NOTE: $crate::Note<{ $crate::note_bytes(option_env!("TENON_NOTE_BYTES")) }> = $crate::Note::reserved();

        #[no_mangle]
        pub extern "C" fn tenon_plugin() -> *const $crate::Plugin {
            &PLUGIN.0
        }
    };
}
