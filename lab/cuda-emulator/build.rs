//! Compiles the kernels for the CPU, where there is a C++ compiler for x86-64.
//!
//! `PALMETTE_KERNELS` names another folder of kernels: that of a planted fault.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(emulated)");
    println!("cargo::rerun-if-env-changed=PALMETTE_KERNELS");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by Cargo"));
    let kernels = env::var_os("PALMETTE_KERNELS")
        .map_or_else(|| root.join("../../crates/cuda/kernels"), PathBuf::from);
    let native = root.join("native");
    for folder in [&kernels, &native] {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    let target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("ARCH") != "x86_64" || target("OS") != "linux" {
        println!("cargo::warning=not Linux on x86-64: the tests of CUDA kernels do nothing");
        return;
    }
    let mut build = cc::Build::new();
    build.cpp(true).std("c++20").opt_level(2).pic(true).warnings(false);
    // `-ffp-contract=off`: a fused multiply-add would have other bits than a device. Wno-psabi: a note
    // about how structs are passed, which concerns nobody here.
    // Accesses that are not aligned trap, as on a device.
    for flag in [
        "-ffp-contract=off",
        "-ftls-model=initial-exec",
        "-Wno-psabi",
        "-U_FORTIFY_SOURCE",
        "-fsanitize=alignment",
        "-fsanitize-undefined-trap-on-error",
    ] {
        build.flag(flag);
    }
    build
        .define("EMULATED", None)
        .include(&kernels)
        .include(&native)
        .file(native.join("launch.cpp"));
    let compiler = build.try_get_compiler();
    let there = compiler.is_ok_and(|compiler| {
        compiler.to_command().arg("--version").output().is_ok_and(|output| output.status.success())
    });
    if !there {
        println!("cargo::warning=no C++20 compiler: the tests of CUDA kernels do nothing");
        return;
    }
    build.compile("palmette_cuda_kernels");
    println!("cargo::rustc-cfg=emulated");
}
