/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The translator's state of a block's words: see vpmu-stream.c.inc. */
#ifndef I386_TCG_VPMU_STREAM_H
#define I386_TCG_VPMU_STREAM_H

/*
 * Maximum number of loads addressed by registers that the block has not set
 * before
 */
#define X86_STREAM_FIRST 8
/* Slots beyond one that a LOOP takes: 6 cycles of Icelake, 5 wide (uops.info) */
#define X86_STREAM_LOOP 29

typedef struct X86VPMUStream {
    bool on;
    bool repeat;         /* words go to stream_at, not to the block */
    bool modify;         /* the next store writes the value just loaded */
    uint8_t again;       /* 1: the instruction has a word already */
    TCGv_ptr block;      /* address of the block's words */
    TCGOp *more, *advance; /* operands that gen_stream_stop() fills in */
    TCGOp *load;         /* sets the low bits of the instruction's load */
    uint32_t words;      /* number of accesses' words */
    uint32_t loose;      /* number of this iteration's words */
    uint32_t uops, divides;
    /*
     * Sets of general registers: sources of the instruction's address;
     * registers that the block has set; those of them that come out of a load
     */
    uint32_t address, written, from_load;
    bool loops;          /* the block jumps to its own start */
    uint8_t n_first;
    struct {
        TCGOp *op;       /* sets the low bits of its word, to these */
        uint64_t bits;
        uint32_t address;
    } first[X86_STREAM_FIRST];
} X86VPMUStream;

static inline uint32_t x86_stream_reg(int n)
{
    return n >= 0 && n < 32 ? 1u << n : 0;
}

/* The instruction sets a register, from @sources or from what it has loaded. */
static inline void x86_stream_set(X86VPMUStream *st, int n, uint32_t sources)
{
    st->written |= 1u << n;
    if (st->again || ((sources | st->address) & st->from_load)) {
        st->from_load |= 1u << n;
    } else {
        st->from_load &= ~(1u << n);
    }
}

/* Data that x86_stream_cut() needs of an instruction, beside CC_OP */
static inline uint64_t x86_stream_data(const X86VPMUStream *st, uint32_t cc_op)
{
    return cc_op | (uint64_t)st->words << 32 |
           (uint64_t)MIN(st->uops, 4095) << 44 | (uint64_t)st->divides << 56;
}

#endif /* I386_TCG_VPMU_STREAM_H */
