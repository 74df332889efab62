// Tells in Swift which bytes may begin a text under a regular expression.
//
// A folder `Palmette` with `palmette.h` and this `module.modulemap` makes the header a module:
//
//     module Palmette [system] { header "palmette.h" link "palmette_c" export * }
//
//     swiftc -I . -L /usr/local/lib mask.swift -o mask && ./mask
import Palmette

struct PalmetteFailure: Error { let message: String }

/// Throws an error of the library, which it frees.
func must(_ error: OpaquePointer?) throws {
    guard let error else { return }
    defer { palmette_error_free(error) }
    throw PalmetteFailure(message: String(cString: palmette_error_message(error)))
}

let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: 256)
defer { bytes.deallocate() }
var tokens: [palmette_token] = (0..<256).map { byte in
    bytes[byte] = UInt8(byte)
    return palmette_token(bytes: bytes + byte, num_bytes: 1, name: nil)
}
tokens.append(palmette_token(bytes: nil, num_bytes: 0, name: nil))
let ends: [UInt32] = [256]
var error: OpaquePointer?
var vocabulary: OpaquePointer?
palmette_vocabulary_from_tokens(tokens, tokens.count, ends, ends.count, &vocabulary, &error)
try must(error)
defer { palmette_vocabulary_free(vocabulary) }

let pattern = "(19|20)[0-9]{2}"
var grammar: OpaquePointer?
palmette_grammar_compile(vocabulary, "regex", pattern, pattern.utf8.count, nil, nil, nil, &grammar, &error)
try must(error)
defer { palmette_grammar_free(grammar) }
var matcher: OpaquePointer?
palmette_matcher_new(grammar, nil, 0, &matcher, &error)
try must(error)
defer { palmette_matcher_free(matcher) }

var mask = [UInt32](repeating: 0, count: palmette_matcher_mask_words(matcher))
palmette_matcher_fill_mask(matcher, &mask, mask.count, nil, &error)
try must(error)
for token in 0..<256 where mask[token / 32] >> UInt32(token % 32) & 1 == 1 {
    print("\(Character(UnicodeScalar(UInt8(token)))) may begin it")
}
