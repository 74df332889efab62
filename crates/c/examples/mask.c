/* Writes a text under a JSON Schema, its tokens drawn by chance among those that may follow and the last ones on the shortest way.
 *
 *     cc mask.c $(pkg-config --cflags --libs palmette) -o mask && ./mask o200k_base '{"enum": ["red", "green"]}' 20
 *
 * The first argument is the name of an encoding or the path of a tokenizer, the second a schema, the third the most tokens.
 */
#include <palmette.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program with an error's message, where there is one. */
static void must(palmette_error *error) {
    if (error != NULL) {
        fprintf(stderr, "%s\n", palmette_error_message(error));
        palmette_error_free(error);
        exit(1);
    }
}

/* One of the tokens of a mask: the place of a model and its sampler. */
static uint32_t draw(const uint32_t *mask, size_t num_words, uint64_t *random) {
    size_t count = 0;
    for (size_t word = 0; word < num_words; word++) count += (size_t)__builtin_popcount(mask[word]);
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    size_t left = (size_t)(*random >> 33) % count;
    for (size_t token = 0;; token++) {
        if (mask[token / 32] >> (token % 32) & 1 && left-- == 0) return (uint32_t)token;
    }
}

int main(int num_arguments, char **arguments) {
    if (num_arguments != 4) {
        fprintf(stderr, "usage: %s ENCODING_OR_PATH SCHEMA TOKENS\n", arguments[0]);
        return 2;
    }
    palmette_error *error = NULL;
    palmette_vocabulary *vocabulary = NULL; /* once a model */
    if (palmette_vocabulary_encoding(arguments[1], &vocabulary, NULL) != PALMETTE_STATUS_OK) {
        palmette_vocabulary_open(arguments[1], NULL, 0, &vocabulary, &error);
        must(error);
    }
    palmette_grammar *grammar = NULL; /* once a schema, and kept by the vocabulary */
    palmette_grammar_compile(vocabulary, "json_schema", arguments[2], strlen(arguments[2]),
                             "{\"whitespace\": \"spaced\"}", NULL, NULL, &grammar, &error);
    must(error);
    palmette_matcher *matcher = NULL; /* once a sequence */
    palmette_matcher_new(grammar, NULL, 0, &matcher, &error);
    must(error);

    const size_t num_words = palmette_matcher_mask_words(matcher);
    uint32_t *mask = calloc(num_words, sizeof *mask);
    if (mask == NULL) return 1;
    palmette_lengths lengths = {.tokens_needed = 0, .tokens_left = (size_t)atoi(arguments[3])};
    uint64_t random = 2;
    while (!palmette_matcher_has_ended(matcher)) {
        palmette_matcher_fill_mask(matcher, mask, num_words, &lengths, &error);
        must(error); /* such as tokens that are too few, before the first */
        uint32_t token = draw(mask, num_words, &random);
        palmette_matcher_commit(matcher, token, &error);
        must(error);
        size_t num_bytes = 0;
        const uint8_t *text = palmette_vocabulary_text(vocabulary, token, &num_bytes);
        if (text != NULL) fwrite(text, 1, num_bytes, stdout);
        if (lengths.tokens_left > 0) lengths.tokens_left--;
    }
    putchar('\n');
    free(mask);
    palmette_matcher_free(matcher);
    palmette_grammar_free(grammar);
    palmette_vocabulary_free(vocabulary);
    return 0;
}
