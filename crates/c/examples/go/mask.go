// Command mask tells in Go which tokens may follow under a JSON Schema, and ends a text that was begun.
//
//	CGO_CFLAGS="$(pkg-config --cflags palmette)" CGO_LDFLAGS="$(pkg-config --libs palmette)" go run .
package main

/*
#cgo pkg-config: palmette
#include <palmette.h>
#include <stdlib.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"unsafe"
)

// must gives an error of the library as one of Go, and frees it.
func must(raised *C.palmette_error) error {
	if raised == nil {
		return nil
	}
	defer C.palmette_error_free(raised)
	return errors.New(C.GoString(C.palmette_error_message(raised)))
}

// bytes is a vocabulary in which every byte is a token, and 256 ends a text.
func bytes() (*C.palmette_vocabulary, error) {
	const numBytes = 256
	// Memory of C: Go passes no pointer to memory that holds pointers of Go.
	all := (*[numBytes]C.uint8_t)(C.malloc(numBytes))
	defer C.free(unsafe.Pointer(all))
	size := C.size_t(unsafe.Sizeof(C.palmette_token{}))
	tokens := (*[numBytes + 1]C.palmette_token)(C.calloc(numBytes+1, size))
	defer C.free(unsafe.Pointer(tokens))
	for at := range all {
		all[at] = C.uint8_t(at)
		tokens[at].bytes = &all[at]
		tokens[at].num_bytes = 1
	}
	end := C.uint32_t(numBytes)
	var made *C.palmette_vocabulary
	var raised *C.palmette_error
	C.palmette_vocabulary_from_tokens(&tokens[0], numBytes+1, &end, 1, &made, &raised)
	return made, must(raised)
}

func run() error {
	vocabulary, err := bytes()
	if err != nil {
		return err
	}
	defer C.palmette_vocabulary_free(vocabulary)

	language, schema := C.CString("json_schema"), `{"enum": ["red", "green"]}`
	defer C.free(unsafe.Pointer(language))
	text := C.CString(schema)
	defer C.free(unsafe.Pointer(text))
	var grammar *C.palmette_grammar
	var raised *C.palmette_error
	C.palmette_grammar_compile(vocabulary, language, text, C.size_t(len(schema)), nil, nil, nil, &grammar, &raised)
	if err := must(raised); err != nil {
		return err
	}
	defer C.palmette_grammar_free(grammar)
	var matcher *C.palmette_matcher
	C.palmette_matcher_new(grammar, nil, 0, &matcher, &raised)
	if err := must(raised); err != nil {
		return err
	}
	defer C.palmette_matcher_free(matcher)

	for _, token := range []byte("\"") {
		C.palmette_matcher_commit(matcher, C.uint32_t(token), &raised)
		if err := must(raised); err != nil {
			return err
		}
	}
	mask := make([]uint32, C.palmette_matcher_mask_words(matcher))
	C.palmette_matcher_fill_mask(matcher, (*C.uint32_t)(&mask[0]), C.size_t(len(mask)), nil, &raised)
	if err := must(raised); err != nil {
		return err
	}
	for token := range [256]struct{}{} {
		if mask[token/32]>>(token%32)&1 == 1 {
			fmt.Printf("%q may follow\n", rune(token))
		}
	}
	way, count := make([]uint32, 16), C.size_t(0)
	C.palmette_matcher_shortest_completion(matcher, (*C.uint32_t)(&way[0]), C.size_t(len(way)), &count, &raised)
	if err := must(raised); err != nil {
		return err
	}
	ending := ""
	for _, token := range way[:count] {
		ending += string(rune(token))
	}
	fmt.Printf("the shortest way on is %s\n", ending)
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
