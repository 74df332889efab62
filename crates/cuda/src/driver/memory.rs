//! Memory of a device, and host memory that copies go through.

use std::any::Any;
use std::fmt::{self, Debug};
use std::sync::Arc;

use super::DeviceError;

/// An address in a device's memory, or null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Address(pub u64);

impl Address {
    /// The address of nothing.
    pub const NULL: Self = Self(0);
}

/// Bytes that are taken before anything runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionPlan {
    /// Name in tables and errors.
    pub name: &'static str,
    /// Number of bytes.
    pub bytes: usize,
}

/// Memory of a device. It is given back when the last clone is dropped.
#[derive(Clone)]
pub struct Region {
    plan: RegionPlan,
    address: Address,
    memory: Arc<dyn Any + Send + Sync>,
}

impl Region {
    /// Memory that a driver took; `memory` gives it back by being dropped.
    pub fn new(plan: RegionPlan, address: Address, memory: Arc<dyn Any + Send + Sync>) -> Self {
        Self { plan, address, memory }
    }

    /// Number of bytes.
    pub fn bytes(&self) -> usize {
        self.plan.bytes
    }

    /// Address of the first byte.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Address of byte `at`, or of the first after the region.
    ///
    /// # Panics
    /// When `at` lies past the end.
    pub fn address_at(&self, at: usize) -> Address {
        assert!(
            at <= self.plan.bytes,
            "byte {at} of {}, which has {}",
            self.plan.name,
            self.bytes()
        );
        Address(self.address.0 + at as u64)
    }

    /// The address of `bytes` bytes from `at` on.
    ///
    /// # Errors
    /// When they do not lie within.
    pub fn checked(&self, at: usize, bytes: usize) -> Result<Address, DeviceError> {
        match at.checked_add(bytes) {
            Some(end) if end <= self.plan.bytes => Ok(self.address_at(at)),
            _ => Err(DeviceError::Outside {
                name: self.plan.name,
                at,
                bytes,
                region_bytes: self.plan.bytes,
            }),
        }
    }

    /// Owner of the memory: work that is under way holds a clone.
    pub fn memory(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::clone(&self.memory)
    }
}

impl Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} bytes at {:#x})", self.plan.name, self.plan.bytes, self.address.0)
    }
}

/// Host memory that the device copies to or from by itself.
///
/// A copy that is under way owns the bytes: until it is done, looking at them is an error.
#[derive(Debug)]
pub struct Pinned(Box<dyn HostMemory>);

/// A driver's own host memory.
pub trait HostMemory: Any + Debug + Send {
    /// Number of bytes.
    fn len(&self) -> usize;

    /// True if there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes.
    ///
    /// # Errors
    /// [`DeviceError::Busy`] while a copy is under way.
    fn bytes(&mut self) -> Result<&mut [u8], DeviceError>;
}

impl Pinned {
    /// Memory that a driver took.
    pub fn new(memory: Box<dyn HostMemory>) -> Self {
        Self(memory)
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes.
    ///
    /// # Errors
    /// [`DeviceError::Busy`] while a copy is under way.
    pub fn bytes(&mut self) -> Result<&mut [u8], DeviceError> {
        self.0.bytes()
    }

    /// Checks that a copy of so many bytes lies within.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn check(&self, bytes: usize) -> Result<(), DeviceError> {
        match self.len() {
            len if bytes <= len => Ok(()),
            len => {
                Err(DeviceError::Outside { name: "host memory", at: 0, bytes, region_bytes: len })
            }
        }
    }

    /// The driver's own memory.
    ///
    /// # Errors
    /// When another kind of driver made it.
    pub fn get<T: HostMemory>(&mut self) -> Result<&mut T, DeviceError> {
        let memory: &mut dyn Any = &mut *self.0;
        memory.downcast_mut().ok_or(DeviceError::Foreign("host memory"))
    }
}
