//! Machine code of the kernels: the files that are compiled into the program, by target.

use std::io::Read;

use crate::Module;

/// A kind of code for which every module is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Machine code for Ampere and Ada: 8.0 to 8.9.
    Sm80,
    /// Machine code for Hopper: 9.0.
    Sm90,
    /// Machine code for RTX 50: 12.0 and 12.1.
    Sm120,
    /// PTX, which the driver compiles: devices of other kinds from 8.0 on.
    Ptx,
}

impl Target {
    /// The target for a device; none below 8.0.
    pub(crate) fn from_capability(capability: (u32, u32)) -> Option<Self> {
        match capability.0 {
            0..8 => None,
            8 => Some(Self::Sm80),
            9 => Some(Self::Sm90),
            12 => Some(Self::Sm120),
            _ => Some(Self::Ptx),
        }
    }
}

/// The code of a module, as the driver loads it: PTX ends by 0. None where it is not built for the
/// target.
pub(crate) fn code(module: Module, target: Target) -> Option<Vec<u8>> {
    macro_rules! built {
        ({ $($module:ident: $name:literal,)* } { $($of_hopper:ident: $hopper_name:literal,)* }) => {
            match module {
                $(Module::$of_hopper => match target {
                    Target::Sm90 => include_bytes!(
                        concat!("../../kernels/built/", $hopper_name, ".sm_90a.zst")
                    ),
                    _ => return None,
                },)*
                $(Module::$module => match target {
                    Target::Sm80 => include_bytes!(concat!("../../kernels/built/", $name, ".sm_80.zst")),
                    Target::Sm90 => include_bytes!(concat!("../../kernels/built/", $name, ".sm_90.zst")),
                    Target::Sm120 => include_bytes!(concat!("../../kernels/built/", $name, ".sm_120.zst")),
                    Target::Ptx => include_bytes!(concat!("../../kernels/built/", $name, ".compute_80.zst")),
                },)*
            }
        };
    }
    let compressed: &[u8] = built! {
        {
            Product: "product_portable",
            Int8: "int8",
            Rows: "rows",
            Attention: "attention_portable",
            Select: "select",
            Masks: "masks",
            Draft: "draft",
        }
        {
            HopperProduct: "product_hopper",
            HopperAttention: "attention_hopper",
        }
    };
    let decoder = ruzstd::decoding::StreamingDecoder::new(compressed);
    let mut code = Vec::new();
    decoder.expect("a frame").read_to_end(&mut code).expect("held to the manifest by a test");
    Some(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kernel;

    #[test]
    fn every_module_is_there_for_every_target_and_has_its_kernels() {
        for target in [Target::Sm80, Target::Sm90, Target::Sm120, Target::Ptx] {
            for module in Module::ALL {
                let is_built = !module.is_of_hopper() || target == Target::Sm90;
                let code = code(module, target);
                assert_eq!(code.is_some(), is_built, "{module:?} for {target:?}");
                let Some(code) = code else { continue };
                match target {
                    Target::Ptx => assert!(code.starts_with(b"//") && code.ends_with(b"\0")),
                    _ => assert!(code.starts_with(b"\x7fELF"), "{module:?} for {target:?}"),
                }
                for kernel in Kernel::ALL.iter().filter(|kernel| kernel.module() == module) {
                    let name = kernel.name().as_bytes();
                    let has = code.windows(name.len()).any(|window| window == name);
                    assert!(has, "{} for {target:?}", kernel.name());
                }
            }
        }
        assert_eq!(Target::from_capability((7, 5)), None);
        assert_eq!(Target::from_capability((8, 9)), Some(Target::Sm80));
        assert_eq!(Target::from_capability((10, 0)), Some(Target::Ptx));
    }
}
