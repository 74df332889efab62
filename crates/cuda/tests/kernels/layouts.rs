//! Layouts: the structs and kernels of Rust are those of C++.

use std::fmt::Write;

use palmette_cuda::Kernel;
use palmette_cuda::arguments::LAYOUTS;

use crate::support::device;

#[test]
fn structs_have_the_sizes_and_offsets_of_the_kernels() {
    if device(palmette_cuda::Architecture::Hopper, 1).is_none() {
        return;
    }
    let mut expected = String::new();
    for (name, bytes, alignment, fields) in LAYOUTS {
        writeln!(expected, "{name} {bytes} {alignment}").unwrap();
        let mut end = 0;
        for field in *fields {
            // No room for a field that neither side lists.
            assert!(field.offset - end < 8, "{name}.{}", field.name);
            end = field.offset + field.bytes;
            writeln!(expected, "  {} {} {}", field.name, field.offset, field.bytes).unwrap();
        }
    }
    assert_eq!(palmette_cuda_emulator::layouts(), expected);
}

#[test]
fn kernels_have_the_numbers_threads_and_memory_of_their_files() {
    if device(palmette_cuda::Architecture::Hopper, 1).is_none() {
        return;
    }
    let mut expected = String::new();
    for kernel in Kernel::ALL {
        let (name, threads) = (kernel.name(), kernel.threads());
        let (shared, bytes) = (kernel.shared_bytes(), kernel.arguments().1);
        writeln!(expected, "{name} {threads} {shared} {bytes}").unwrap();
        let most = if kernel.module().is_of_hopper() { 227 } else { 99 };
        assert!(shared <= most << 10, "{name} fits no block of every device that has it");
    }
    assert_eq!(palmette_cuda_emulator::kernels(), expected);
}
