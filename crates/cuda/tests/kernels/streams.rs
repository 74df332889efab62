//! The seam: order of streams, graphs, memory, and faults that become errors.

use palmette_cuda::arguments::BitMask;
use palmette_cuda::{Address, Architecture, DeviceError, Kernel, RegionPlan, Stream, launch};

use crate::support::{Device, NULL, device};

/// A launch that makes one logit -inf, over an array of one.
fn forbid(device: &Device, logits: Address) -> (BitMask, [palmette_cuda::Region; 2]) {
    let kept = [device.put(&[1i32]), device.put(&[0u32])];
    let arguments = BitMask {
        rows: kept[0].address(),
        masks_of: NULL,
        masks: kept[1].address(),
        logits,
        columns: 1,
        words: 1,
    };
    (arguments, kept)
}

#[test]
fn work_of_streams_is_ordered_by_events_and_by_nothing_else() {
    let mut without_event = Vec::new();
    for seed in 1..40 {
        let Some(device) = device(Architecture::Hopper, seed) else { return };
        for has_event in [true, false] {
            let logits = device.put(&[1.0f32]);
            let (arguments, _kept) = forbid(&device, logits.address());
            let (on, driver) = (Stream::Compute, &*device.driver);
            launch(driver, on, Kernel::ApplyBitmask, [1, 1, 1], &arguments).unwrap();
            if has_event {
                let event = driver.record(on).unwrap();
                driver.wait(Stream::Download, &event).unwrap();
            }
            let mut read = driver.pinned(4).unwrap();
            driver.read(Stream::Download, &logits, 0, &mut read, 4).unwrap();
            assert!(matches!(read.bytes(), Err(DeviceError::Busy)));
            let event = driver.record(Stream::Download).unwrap();
            driver.finish(&event).unwrap();
            assert!(driver.is_done(&event).unwrap());
            let value = f32::from_le_bytes(read.bytes().unwrap().try_into().unwrap());
            if has_event {
                assert_eq!(value, f32::NEG_INFINITY, "seed {seed}");
            } else {
                without_event.push(value);
            }
            // The launch that may still be there keeps its memory until it is done.
            let event = driver.record(on).unwrap();
            driver.finish(&event).unwrap();
        }
    }
    assert!(without_event.contains(&1.0) && without_event.contains(&f32::NEG_INFINITY));
}

#[test]
fn a_graph_makes_its_launches_again() {
    let Some(device) = device(Architecture::Hopper, 3) else { return };
    let driver = &*device.driver;
    let logits = device.put(&[1.0f32]);
    let (arguments, _kept) = forbid(&device, logits.address());
    let on = Stream::Compute;
    let graph = driver
        .capture(on, &mut || launch(driver, on, Kernel::ApplyBitmask, [1, 1, 1], &arguments))
        .unwrap();
    assert_eq!(device.get::<f32>(&logits), [1.0]);
    for _ in 0..2 {
        driver.replay(on, &graph).unwrap();
        driver.finish(&driver.record(on).unwrap()).unwrap();
        assert_eq!(device.get::<f32>(&logits), [f32::NEG_INFINITY]);
        let mut one = driver.pinned(4).unwrap();
        one.bytes().unwrap().copy_from_slice(&1f32.to_le_bytes());
        driver.write(Stream::Upload, &logits, 0, &mut one, 4).unwrap();
        driver.finish(&driver.record(Stream::Upload).unwrap()).unwrap();
    }
    // Copies have no place in a graph.
    let refused =
        driver.capture(on, &mut || driver.write(on, &logits, 0, &mut driver.pinned(4)?, 4));
    assert!(matches!(refused, Err(DeviceError::NotCapturable("copies"))));
    assert_eq!(device.get::<f32>(&logits), [1.0]);
}

#[test]
fn a_fault_is_an_error_with_its_place_and_stays() {
    let Some(device) = device(Architecture::Hopper, 1) else { return };
    let driver = &*device.driver;
    let logits = device.put(&[1.0f32]);
    let (mut arguments, _kept) = forbid(&device, logits.address());
    arguments.columns = 32;
    let on = Stream::Compute;
    launch(driver, on, Kernel::ApplyBitmask, [1, 1, 1], &arguments).unwrap();
    // Recording may meet the fault already.
    let error = driver.record(on).and_then(|event| driver.finish(&event)).unwrap_err();
    let message = error.to_string();
    assert!(matches!(error, DeviceError::Fault(_)));
    assert!(message.contains("apply_bitmask, block (0, 0, 0), thread "), "{message}");
    assert!(message.contains("outside of its memory"), "{message}");
    assert!(matches!(driver.record(on), Err(DeviceError::Fault(_))));
}

#[test]
fn plans_that_do_not_fit_and_copies_out_of_place_are_refused() {
    let Some(device) = device(Architecture::Hopper, 1) else { return };
    let plans = [
        RegionPlan { name: "weights", bytes: 3 << 30 },
        RegionPlan { name: "pages", bytes: 2 << 30 },
    ];
    let error = device.driver.regions(&plans).unwrap_err().to_string();
    assert!(error.contains("weights") && error.contains("--device-batch-tokens"), "{error}");
    let region = device.empty(8);
    let mut bytes = device.driver.pinned(8).unwrap();
    let error = device.driver.write(Stream::Upload, &region, 1, &mut bytes, 8).unwrap_err();
    assert_eq!(
        error.to_string(),
        "8 bytes from byte 1 on are not within an array of a test, which has 8"
    );
    let error = device.driver.read(Stream::Download, &region, 0, &mut bytes, 9).unwrap_err();
    assert_eq!(error.to_string(), "9 bytes from byte 0 on are not within host memory, which has 8");
}
