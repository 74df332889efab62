//! An NVIDIA device over its driver's interface: the one module that calls into it.
//!
//! The driver is found when a device is opened; a program without one runs all the same.
#![allow(unsafe_code, reason = "calls of the driver")]

use std::ffi::{CString, c_void};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

use super::modules::{self, Target};
use super::tiles::BOX_COLUMNS;
use super::{
    Address, CallerStream, DeviceError, DeviceInfo, Driver, Event, Graph, HostMemory, Pinned,
    Region, RegionPlan, Stream, TensorMap, Tiles,
};
use crate::{Kernel, Module};

/// Version of CUDA that the kernels' machine code needs: that of driver 525.
const LEAST_CUDA: i32 = 12_000;
/// Regions begin at multiples of it: the widest access of a tensor copy.
const REGION_ALIGNMENT: usize = 1024;
/// Shared memory that a block has unless more is asked for.
const ORDINARY_SHARED: usize = 48 << 10;

/// An NVIDIA device.
#[derive(Debug)]
pub struct Device {
    info: DeviceInfo,
    context: Arc<Context>,
    streams: [sys::CUstream; Stream::ALL.len()],
    modules: Vec<(Module, sys::CUmodule)>,
    /// Functions of kernels; none of modules that are not built for this device.
    functions: Vec<Option<sys::CUfunction>>,
    /// The stream whose launches become part of a graph.
    captured: Mutex<Option<Stream>>,
    events: Arc<EventPool>,
}

/// A device of the machine, as a list of them says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedDevice {
    /// Name and sizes.
    pub info: DeviceInfo,
    /// Bytes of memory that nobody has.
    pub free: u64,
    /// False where it lacks instructions that the kernels need.
    pub is_new_enough: bool,
}

// SAFETY: handles of the driver may be used by any thread that has made their context current,
// which every call here does first.
unsafe impl Send for Device {}
// SAFETY: as above; the driver's calls synchronise themselves.
unsafe impl Sync for Device {}

impl Device {
    /// Opens the device `index` and loads the kernels.
    ///
    /// # Errors
    /// No driver, no such device, a device or a driver that is too old.
    pub fn open(index: usize) -> Result<Self, DeviceError> {
        let count = Self::count()?;
        if index >= count {
            return Err(DeviceError::NoDevice { index, count });
        }
        let device = result::device::get(index as i32).map_err(error("cuDeviceGet"))?;
        let info = describe(device)?;
        let Some(target) = Target::from_capability(info.capability) else {
            let DeviceInfo { name, capability, .. } = info;
            return Err(DeviceError::OldDevice { index, name, capability });
        };
        let context = Arc::new(Context::retain(device)?);
        context.bind()?;
        let events = EventPool { context: Arc::clone(&context), free: Mutex::default() };
        let null = std::ptr::null_mut();
        let mut this = Self {
            info,
            context,
            streams: [null; Stream::ALL.len()],
            modules: Vec::new(),
            functions: Vec::new(),
            captured: Mutex::new(None),
            events: Arc::new(events),
        };
        // Into `this` one by one, so that an error on the way destroys what there is.
        let urgent = urgent_priority()?;
        for on in Stream::ALL {
            let priority = if on == Stream::Selection { urgent } else { 0 };
            this.streams[on as usize] = create_stream(priority)?;
        }
        for module in Module::ALL {
            if let Some(code) = modules::code(module, target) {
                this.modules.push((module, load(module, &code)?));
            }
        }
        for &kernel in Kernel::ALL {
            this.functions.push(function(&this.modules, kernel)?);
        }
        Ok(this)
    }

    /// Number of devices, once the driver is there and new enough.
    fn count() -> Result<usize, DeviceError> {
        // SAFETY: it loads a library by name; the driver's has no initialisation that could fail
        // in other ways than by an error of `init`.
        if !unsafe { sys::is_culib_present() } {
            return Err(DeviceError::NoDriver);
        }
        match result::init() {
            Err(DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => return Ok(0),
            result => result.map_err(error("cuInit"))?,
        }
        let mut version = 0;
        // SAFETY: it writes one number.
        let status = unsafe { sys::cuDriverGetVersion(&raw mut version) };
        status.result().map_err(error("cuDriverGetVersion"))?;
        if version < LEAST_CUDA {
            let driver = format!("(CUDA {}.{})", version / 1000, version % 1000 / 10);
            return Err(DeviceError::OldDriver { driver });
        }
        Ok(result::device::get_count().map_err(error("cuDeviceGetCount"))? as usize)
    }

    /// The devices of this machine, in the order of their numbers; nothing is loaded on them.
    ///
    /// # Errors
    /// No driver, or one that is too old.
    pub fn list() -> Result<Vec<ListedDevice>, DeviceError> {
        let listed = |index: usize| {
            let device = result::device::get(index as i32).map_err(error("cuDeviceGet"))?;
            let info = describe(device)?;
            let is_known = Target::from_capability(info.capability).is_some();
            let context = Context::retain(device)?;
            context.bind()?;
            let (free, _) = result::mem_get_info().map_err(error("cuMemGetInfo"))?;
            Ok(ListedDevice { info, free: free as u64, is_new_enough: is_known })
        };
        (0..Self::count()?).map(listed).collect()
    }

    fn stream(&self, on: Stream) -> sys::CUstream {
        self.streams[on as usize]
    }

    /// Launches a kernel; the context is current.
    fn launch_on(
        &self,
        stream: sys::CUstream,
        kernel: Kernel,
        grid: [u32; 3],
        arguments: &[u8],
    ) -> Result<(), DeviceError> {
        assert_eq!(arguments.len(), kernel.arguments().1, "arguments of {}", kernel.name());
        let mut parameters = [arguments.as_ptr().cast_mut().cast::<c_void>()];
        let function =
            self.functions[kernel as usize].ok_or(DeviceError::NoKernel(kernel.name()))?;
        let (grid, block) = ((grid[0], grid[1], grid[2]), (kernel.threads(), 1, 1));
        let shared = kernel.shared_bytes() as u32;
        // SAFETY: the kernel takes one struct of so many bytes, which the driver copies before it
        // returns. The addresses in it are the caller's, and so is the stream where it is not the
        // device's, by the contracts of `Driver::launch` and `Driver::launch_on_caller`.
        let launched = unsafe {
            result::launch_kernel(function, grid, block, shared, stream, &mut parameters)
        };
        launched.map_err(error("cuLaunchKernel"))
    }

    /// Makes the context current, where nothing is captured.
    fn begin(&self, what: &'static str) -> Result<(), DeviceError> {
        if self.captured.lock().expect("no holder panics").is_some() {
            return Err(DeviceError::NotCapturable(what));
        }
        self.context.bind()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if self.context.bind().is_err() {
            return;
        }
        // SAFETY: each handle was made by this device and is destroyed once. What is queued is done
        // first, since it may use the modules.
        unsafe {
            for &stream in self.streams.iter().filter(|stream| !stream.is_null()) {
                let _ = result::stream::synchronize(stream);
                let _ = result::stream::destroy(stream);
            }
            for &(_, module) in &self.modules {
                let _ = result::module::unload(module);
            }
        }
    }
}

impl Driver for Device {
    fn describe(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn regions(&self, plans: &[RegionPlan]) -> Result<Vec<Region>, DeviceError> {
        self.begin("an allocation")?;
        let too_much = || {
            let free = result::mem_get_info().map_or(0, |(free, _)| free as u64);
            DeviceError::OutOfMemory { plans: plans.to_vec(), free }
        };
        let mut bytes = 0usize;
        let mut begins = Vec::new();
        for plan in plans {
            begins.push(bytes);
            let end = bytes.checked_add(plan.bytes);
            let end = end.and_then(|end| end.checked_next_multiple_of(REGION_ALIGNMENT));
            bytes = end.ok_or_else(too_much)?;
        }
        // SAFETY: it takes a number, above 0.
        let taken = unsafe { result::malloc_sync(bytes.max(REGION_ALIGNMENT)) };
        let address = match taken {
            Err(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => return Err(too_much()),
            taken => taken.map_err(error("cuMemAlloc"))?,
        };
        let memory = Arc::new(Allocation { context: Arc::clone(&self.context), address });
        let region = |(plan, begin): (&RegionPlan, usize)| {
            Region::new(plan.clone(), Address(address + begin as u64), memory.clone())
        };
        Ok(plans.iter().zip(begins).map(region).collect())
    }

    fn free_bytes(&self) -> Result<u64, DeviceError> {
        self.begin("a question")?;
        let (free, _) = result::mem_get_info().map_err(error("cuMemGetInfo"))?;
        Ok(free as u64)
    }

    fn clear(&self, on: Stream, region: &Region) -> Result<(), DeviceError> {
        self.begin("copies")?;
        let (address, bytes) = (region.address().0, region.bytes());
        // SAFETY: the region has so many bytes, and is given back by a call that waits.
        let cleared = unsafe { result::memset_d8_async(address, 0, bytes, self.stream(on)) };
        cleared.map_err(error("cuMemsetD8Async"))
    }

    fn pinned(&self, bytes: usize) -> Result<Pinned, DeviceError> {
        self.begin("an allocation")?;
        // SAFETY: it takes a number, above 0.
        let data = unsafe { result::malloc_host(bytes.max(1), 0) };
        let data = data.map_err(error("cuMemHostAlloc"))?.cast::<u8>();
        let data = NonNull::new(data).expect("memory that was taken");
        // SAFETY: so many bytes were taken.
        unsafe { data.write_bytes(0, bytes) };
        let (context, events) = (Arc::clone(&self.context), Arc::clone(&self.events));
        Ok(Pinned::new(Box::new(Host {
            context,
            events,
            data,
            bytes,
            copies: [const { None }; Stream::ALL.len()],
        })))
    }

    fn write(
        &self,
        on: Stream,
        to: &Region,
        at: usize,
        from: &mut Pinned,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        self.begin("copies")?;
        from.check(bytes)?;
        let address = to.checked(at, bytes)?.0;
        let (stream, host) = (self.stream(on), from.get::<Host>()?);
        // SAFETY: both ends have so many bytes. The host's are not looked at and not given back
        // before the event below; the device's are given back by a call that waits for the device.
        unsafe {
            let bytes = std::slice::from_raw_parts(host.data.as_ptr(), bytes);
            result::memcpy_htod_async(address, bytes, stream)
                .map_err(error("cuMemcpyHtoDAsync"))?;
        }
        host.record(on, stream)
    }

    fn read(
        &self,
        on: Stream,
        from: &Region,
        at: usize,
        to: &mut Pinned,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        self.begin("copies")?;
        to.check(bytes)?;
        let address = from.checked(at, bytes)?.0;
        let (stream, host) = (self.stream(on), to.get::<Host>()?);
        // SAFETY: as in `write`; the slice ends with the call, and the bytes are not looked at
        // before the event.
        unsafe {
            let bytes = std::slice::from_raw_parts_mut(host.data.as_ptr(), bytes);
            result::memcpy_dtoh_async(bytes, address, stream)
                .map_err(error("cuMemcpyDtoHAsync"))?;
        }
        host.record(on, stream)
    }

    fn tensor_map(&self, tiles: &Tiles) -> Result<TensorMap, DeviceError> {
        tiles.check()?;
        let mut map = sys::CUtensorMap { opaque: [0; 16] };
        let (sizes, row_bytes) = ([tiles.columns, tiles.rows], [tiles.columns * 2]);
        let (box_sizes, strides) = ([BOX_COLUMNS, tiles.box_rows], [1, 1]);
        // SAFETY: it writes one map, and reads two lengths of each array, one of the bytes of rows.
        // The matrix is not looked at.
        let made = unsafe {
            sys::cuTensorMapEncodeTiled(
                &raw mut map,
                sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                2,
                tiles.address.0 as *mut c_void,
                sizes.as_ptr(),
                row_bytes.as_ptr(),
                box_sizes.as_ptr(),
                strides.as_ptr(),
                sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
                sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        };
        made.result().map_err(error("cuTensorMapEncodeTiled"))?;
        let mut bytes = [0; 128];
        for (to, word) in bytes.chunks_exact_mut(8).zip(map.opaque) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        Ok(TensorMap(bytes))
    }

    fn launch(
        &self,
        on: Stream,
        kernel: Kernel,
        grid: [u32; 3],
        arguments: &[u8],
    ) -> Result<(), DeviceError> {
        match *self.captured.lock().expect("no holder panics") {
            Some(stream) if stream != on => {
                return Err(DeviceError::NotCapturable("launches on another stream"));
            }
            _ => self.context.bind()?,
        }
        self.launch_on(self.stream(on), kernel, grid, arguments)
    }

    fn launch_on_caller(
        &self,
        on: CallerStream,
        kernel: Kernel,
        grid: [u32; 3],
        arguments: &[u8],
    ) -> Result<(), DeviceError> {
        let _entered = self.context.enter()?;
        self.launch_on(on.0 as sys::CUstream, kernel, grid, arguments)
    }

    fn capture(
        &self,
        on: Stream,
        launches: &mut dyn FnMut() -> Result<(), DeviceError>,
    ) -> Result<Graph, DeviceError> {
        self.begin("another capture")?;
        let (stream, mode) =
            (self.stream(on), sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED);
        // SAFETY: the stream is this device's. Relaxed, since the calls that a capture may not hold
        // are refused here by name.
        unsafe { result::stream::begin_capture(stream, mode) }
            .map_err(error("cuStreamBeginCapture"))?;
        *self.captured.lock().expect("no holder panics") = Some(on);
        let made = launches();
        *self.captured.lock().expect("no holder panics") = None;
        // SAFETY: the capture was begun above; it ends whatever became of the launches.
        let graph = unsafe { result::stream::end_capture(stream) };
        let graph = graph.map_err(error("cuStreamEndCapture"));
        made?;
        let graph = graph?;
        // SAFETY: the graph is whole; it is destroyed once; its executable form does not need it.
        let executable = unsafe {
            let executable = result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0));
            let _ = result::graph::destroy(graph);
            executable.map_err(error("cuGraphInstantiate"))?
        };
        let context = Arc::clone(&self.context);
        Ok(Graph::new(Arc::new(ExecutableGraph { context, executable })))
    }

    fn replay(&self, on: Stream, graph: &Graph) -> Result<(), DeviceError> {
        self.begin("graphs")?;
        let graph = graph.get::<ExecutableGraph>()?;
        // SAFETY: both handles live.
        let launched = unsafe { result::graph::launch(graph.executable, self.stream(on)) };
        launched.map_err(error("cuGraphLaunch"))
    }

    fn record(&self, on: Stream) -> Result<Event, DeviceError> {
        self.begin("events")?;
        let event = self.events.take()?;
        event.record(self.stream(on))?;
        Ok(Event::new(Arc::new(event)))
    }

    fn wait(&self, on: Stream, event: &Event) -> Result<(), DeviceError> {
        self.begin("waits")?;
        let (stream, flags) = (self.stream(on), sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT);
        // SAFETY: both handles live.
        let waits =
            unsafe { result::stream::wait_event(stream, event.get::<Mark>()?.event, flags) };
        waits.map_err(error("cuStreamWaitEvent"))
    }

    fn is_done(&self, event: &Event) -> Result<bool, DeviceError> {
        event.get::<Mark>()?.is_done()
    }

    fn finish(&self, event: &Event) -> Result<(), DeviceError> {
        event.get::<Mark>()?.finish()
    }
}

/// The device's primary context, shared with all that is to be given back to it.
#[derive(Debug)]
struct Context {
    device: sys::CUdevice,
    context: sys::CUcontext,
}

// SAFETY: contexts may be made current by any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    fn retain(device: sys::CUdevice) -> Result<Self, DeviceError> {
        // SAFETY: the driver gave the device.
        let context = unsafe { result::primary_ctx::retain(device) };
        Ok(Self { device, context: context.map_err(error("cuDevicePrimaryCtxRetain"))? })
    }

    /// Makes it current until the guard is dropped, which puts back the one that was: who computes
    /// on another device in this thread goes on there.
    fn enter(&self) -> Result<EnteredContext, DeviceError> {
        let before = result::ctx::get_current().map_err(error("cuCtxGetCurrent"))?;
        self.bind()?;
        Ok(EnteredContext { before: before.filter(|&before| before != self.context) })
    }

    /// Makes it current on this thread: a call of some nanoseconds where it is already.
    fn bind(&self) -> Result<(), DeviceError> {
        // SAFETY: it is retained.
        unsafe { result::ctx::set_current(self.context) }.map_err(error("cuCtxSetCurrent"))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it was retained once.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// The context that a thread had, where it was another.
struct EnteredContext {
    before: Option<sys::CUcontext>,
}

impl Drop for EnteredContext {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: it was current on this thread when the guard was made, which stays there.
            let _ = unsafe { result::ctx::set_current(before) };
        }
    }
}

/// Device memory.
#[derive(Debug)]
struct Allocation {
    context: Arc<Context>,
    address: sys::CUdeviceptr,
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: it was taken once. The call waits for the device, so nothing uses it.
            let _ = unsafe { result::free_sync(self.address) };
        }
    }
}

/// Events of the driver that nobody has: a pass takes several, and making one is a call.
#[derive(Debug)]
struct EventPool {
    context: Arc<Context>,
    free: Mutex<Vec<sys::CUevent>>,
}

// SAFETY: events may be used by any thread that has made their context current.
unsafe impl Send for EventPool {}
// SAFETY: as above.
unsafe impl Sync for EventPool {}

impl EventPool {
    fn take(self: &Arc<Self>) -> Result<Mark, DeviceError> {
        let free = self.free.lock().expect("no holder panics").pop();
        let make = || result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING);
        let event = free.map_or_else(make, Ok).map_err(error("cuEventCreate"))?;
        Ok(Mark { pool: Arc::clone(self), event })
    }
}

impl Drop for EventPool {
    fn drop(&mut self) {
        if self.context.bind().is_err() {
            return;
        }
        for event in self.free.get_mut().expect("no holder panics").drain(..) {
            // SAFETY: it was made once, and nobody has it; the driver lets events be destroyed
            // before they happen.
            let _ = unsafe { result::event::destroy(event) };
        }
    }
}

/// A place in a stream. Its event is taken for another place when it is dropped: what waits for it
/// already waits for the place that it marked then.
#[derive(Debug)]
struct Mark {
    pool: Arc<EventPool>,
    event: sys::CUevent,
}

// SAFETY: as for the pool.
unsafe impl Send for Mark {}
// SAFETY: as for the pool.
unsafe impl Sync for Mark {}

impl Drop for Mark {
    fn drop(&mut self) {
        self.pool.free.lock().expect("no holder panics").push(self.event);
    }
}

impl Mark {
    fn record(&self, stream: sys::CUstream) -> Result<(), DeviceError> {
        // SAFETY: both handles live.
        unsafe { result::event::record(self.event, stream) }.map_err(error("cuEventRecord"))
    }

    fn is_done(&self) -> Result<bool, DeviceError> {
        self.pool.context.bind()?;
        // SAFETY: the handle lives.
        match unsafe { result::event::query(self.event) } {
            Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            result => result.map(|()| true).map_err(error("cuEventQuery")),
        }
    }

    fn finish(&self) -> Result<(), DeviceError> {
        self.pool.context.bind()?;
        // SAFETY: the handle lives.
        let finished = unsafe { result::event::synchronize(self.event) };
        finished.map_err(error("cuEventSynchronize"))
    }
}

/// Page-locked host memory.
#[derive(Debug)]
struct Host {
    context: Arc<Context>,
    events: Arc<EventPool>,
    data: NonNull<u8>,
    bytes: usize,
    /// End of the last copy on each stream.
    copies: [Option<Mark>; Stream::ALL.len()],
}

// SAFETY: it owns its memory.
unsafe impl Send for Host {}

impl Host {
    /// Notes that a copy is under way on a stream; it was queued just now.
    fn record(&mut self, on: Stream, stream: sys::CUstream) -> Result<(), DeviceError> {
        let copy = &mut self.copies[on as usize];
        if copy.is_none() {
            *copy = Some(self.events.take()?);
        }
        copy.as_ref().expect("put there above").record(stream)
    }
}

impl HostMemory for Host {
    fn len(&self) -> usize {
        self.bytes
    }

    fn bytes(&mut self) -> Result<&mut [u8], DeviceError> {
        for copy in self.copies.iter().flatten() {
            if !copy.is_done()? {
                return Err(DeviceError::Busy);
            }
        }
        // SAFETY: so many bytes were taken and written; no copy is under way, and none begins while
        // they are borrowed.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.data.as_ptr(), self.bytes) })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for copy in self.copies.iter().flatten() {
            let _ = copy.finish();
        }
        if self.context.bind().is_ok() {
            // SAFETY: it was taken once, and no copy is under way.
            let _ = unsafe { result::free_host(self.data.as_ptr().cast()) };
        }
    }
}

/// Launches that the driver makes by one call.
#[derive(Debug)]
struct ExecutableGraph {
    context: Arc<Context>,
    executable: sys::CUgraphExec,
}

// SAFETY: as for events.
unsafe impl Send for ExecutableGraph {}
// SAFETY: as for events; it is never changed.
unsafe impl Sync for ExecutableGraph {}

impl Drop for ExecutableGraph {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: it was made once; launches that are under way keep what they need.
            let _ = unsafe { result::graph::exec_destroy(self.executable) };
        }
    }
}

fn describe(device: sys::CUdevice) -> Result<DeviceInfo, DeviceError> {
    use sys::CUdevice_attribute as Attribute;
    let get = |attribute| {
        // SAFETY: the driver gave the device.
        let value = unsafe { result::device::get_attribute(device, attribute) };
        value.map_err(error("cuDeviceGetAttribute")).map(|value| value as u32)
    };
    // SAFETY: as above.
    let bytes = unsafe { result::device::total_mem(device) };
    Ok(DeviceInfo {
        name: result::device::get_name(device).map_err(error("cuDeviceGetName"))?,
        capability: (
            get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        bytes: bytes.map_err(error("cuDeviceTotalMem"))? as u64,
        multiprocessors: get(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        shared_bytes: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?
            as usize,
    })
}

/// The number of the priority above all others; lower ones are above.
fn urgent_priority() -> Result<i32, DeviceError> {
    let (mut least, mut greatest) = (0, 0);
    // SAFETY: it writes two numbers.
    let status = unsafe { sys::cuCtxGetStreamPriorityRange(&raw mut least, &raw mut greatest) };
    status.result().map_err(error("cuCtxGetStreamPriorityRange"))?;
    Ok(greatest)
}

fn create_stream(priority: i32) -> Result<sys::CUstream, DeviceError> {
    let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
    let mut stream = std::ptr::null_mut();
    // SAFETY: it writes one handle, of the context that is current.
    let status = unsafe { sys::cuStreamCreateWithPriority(&raw mut stream, flags, priority) };
    status.result().map_err(error("cuStreamCreateWithPriority"))?;
    Ok(stream)
}

fn load(module: Module, code: &[u8]) -> Result<sys::CUmodule, DeviceError> {
    // SAFETY: it is machine code, or PTX that ends by 0; the driver copies it.
    let loaded = unsafe { result::module::load_data(code.as_ptr().cast()) };
    match loaded {
        Err(DriverError(
            sys::CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
            | sys::CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
            | sys::CUresult::CUDA_ERROR_INVALID_IMAGE,
        )) => {
            Err(DeviceError::OldDriver { driver: format!("(it does not load {})", module.name()) })
        }
        loaded => loaded.map_err(error("cuModuleLoadData")),
    }
}

fn function(
    modules: &[(Module, sys::CUmodule)],
    kernel: Kernel,
) -> Result<Option<sys::CUfunction>, DeviceError> {
    let name = CString::new(kernel.name()).expect("no name has a 0");
    let module = modules.iter().find(|(module, _)| *module == kernel.module());
    let Some(&(_, module)) = module else { return Ok(None) };
    // SAFETY: the module is loaded.
    let function = unsafe { result::module::get_function(module, name) };
    let function = function.map_err(error("cuModuleGetFunction"))?;
    if kernel.shared_bytes() > ORDINARY_SHARED {
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let bytes = kernel.shared_bytes() as i32;
        // SAFETY: the function lives as long as its module.
        let set = unsafe { result::function::set_function_attribute(function, attribute, bytes) };
        set.map_err(error("cuFuncSetAttribute"))?;
    }
    Ok(Some(function))
}

/// The error of a call: by name, and apart if the device does no more work after it.
fn error(call: &'static str) -> impl Fn(DriverError) -> DeviceError {
    use sys::CUresult as R;
    move |error| {
        let name =
            error.error_name().map_or("an unknown failure".into(), |name| name.to_string_lossy());
        let text = error.error_string().map_or("".into(), |text| text.to_string_lossy());
        let message = format!("{name}: {text}");
        match error.0 {
            R::CUDA_ERROR_ILLEGAL_ADDRESS
            | R::CUDA_ERROR_MISALIGNED_ADDRESS
            | R::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | R::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | R::CUDA_ERROR_INVALID_PC
            | R::CUDA_ERROR_HARDWARE_STACK_ERROR
            | R::CUDA_ERROR_LAUNCH_FAILED
            | R::CUDA_ERROR_LAUNCH_TIMEOUT
            | R::CUDA_ERROR_ECC_UNCORRECTABLE
            | R::CUDA_ERROR_ASSERT => DeviceError::Fault(message),
            _ => DeviceError::Driver { call, message },
        }
    }
}
