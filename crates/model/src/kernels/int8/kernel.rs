//! Sets of instructions by which products with 8-bit weights are computed, and which are here.

#[cfg(target_arch = "x86_64")]
use crate::kernels::tiles;

/// The instructions that sums are computed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kernel {
    /// Plain code; several times slower than products in f32.
    Portable,
    /// AVX2: products of bytes, summed in halves of 16 bits.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 VNNI: four products of bytes are added to 32 bits in one instruction.
    #[cfg(target_arch = "x86_64")]
    Vnni,
    /// AMX: products of tiles; VNNI where rows are too few for a tile.
    #[cfg(target_arch = "x86_64")]
    Amx,
    /// NEON, as every 64-bit ARM processor has it.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// NEON's dot products of four bytes (`FEAT_DotProd`).
    #[cfg(target_arch = "aarch64")]
    NeonDot,
}

impl Kernel {
    /// Kernels that this processor has, the fastest last.
    pub(super) fn all_here() -> impl Iterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        let has_vnni = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vnni");
        #[cfg(target_arch = "x86_64")]
        let others = [
            (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"), Self::Avx2),
            (has_vnni, Self::Vnni),
            (has_vnni && tiles::have_bytes(), Self::Amx),
        ];
        #[cfg(target_arch = "aarch64")]
        let others = [
            (std::arch::is_aarch64_feature_detected!("neon"), Self::Neon),
            (std::arch::is_aarch64_feature_detected!("dotprod"), Self::NeonDot),
        ];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let others: [(bool, Self); 0] = [];
        let others = others.into_iter().filter_map(|(is_here, kernel)| is_here.then_some(kernel));
        [Self::Portable].into_iter().chain(others)
    }
}

/// The way in which products with 8-bit weights are computed: a set of instructions that this
/// processor has.
///
/// Kernels give the same bits. Weights take the fastest when they are rounded; others are for tests
/// and for measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int8Kernel(pub(super) Kernel);

impl Int8Kernel {
    /// The fastest that this processor has.
    pub fn here() -> Self {
        Self(Kernel::all_here().last().unwrap_or(Kernel::Portable))
    }

    /// Kernels that this processor has, the fastest last.
    pub fn all_here() -> impl Iterator<Item = Self> {
        Kernel::all_here().map(Self)
    }

    /// The instructions, in lower case: `portable`, `avx2`, `vnni`, `amx`, `neon` or `dotprod`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kernel::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kernel::Vnni => "vnni",
            #[cfg(target_arch = "x86_64")]
            Kernel::Amx => "amx",
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon => "neon",
            #[cfg(target_arch = "aarch64")]
            Kernel::NeonDot => "dotprod",
        }
    }

    /// True for instructions with which products take no longer than in f32.
    ///
    /// Plain NEON makes two instructions of what the dot products of later processors do in one for
    /// four times as many values: no more than in f32.
    pub(crate) fn is_fast(self) -> bool {
        match self.0 {
            Kernel::Portable => false,
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 | Kernel::Vnni | Kernel::Amx => true,
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon => false,
            #[cfg(target_arch = "aarch64")]
            Kernel::NeonDot => true,
        }
    }
}
