/* Secrets; see token.h. */
#include "serve/token.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <string.h>
#include <sys/random.h>

int token_make(char out[TOKEN_TEXT], struct error *err)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char bytes[TOKEN_TEXT - 1];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_errno(err, FAULT_SYSTEM, "cannot get random bytes for a token");
    for (size_t i = 0; i < sizeof bytes; i++)
        out[i] = letters[bytes[i] & 63];
    out[sizeof bytes] = 0;
    return 0;
}

void token_hash(const char *token, char out[TOKEN_HASH])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char hash[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)token, strlen(token), hash);
    for (size_t i = 0; i < sizeof hash; i++) {
        out[2 * i] = digits[hash[i] >> 4];
        out[2 * i + 1] = digits[hash[i] & 15];
    }
    out[TOKEN_HASH - 1] = 0;
}

bool token_equal(const char *a, const char *b)
{
    char first[TOKEN_HASH], second[TOKEN_HASH];
    token_hash(a, first);
    token_hash(b, second);
    return CRYPTO_memcmp(first, second, TOKEN_HASH) == 0;
}
