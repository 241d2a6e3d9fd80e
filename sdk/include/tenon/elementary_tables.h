/* Tenon SDK: the numbers of tenon/elementary.h. SPDX-License-Identifier: MIT
 *
 * Written by tests/sdk/elementary_tables.py; a number in two parts is their sum. */
#ifndef TENON_ELEMENTARY_TABLES_H
#define TENON_ELEMENTARY_TABLES_H

#include <stdint.h>

/* clang-format off */

#define TN_LOG_2_HIGH 0x1.62e42fefa3800p-1
#define TN_LOG_2_LOW 0x1.ef35793c76730p-45
#define TN_LOG_2_BY_64_HIGH 0x1.62e42fef80000p-7
#define TN_LOG_2_BY_64_LOW 0x1.1cf79abc9e3b4p-42
#define TN_LOG_2_NEAREST_HIGH 0x1.62e42fefa39efp-1
#define TN_LOG_2_NEAREST_LOW 0x1.abc9e3b39803fp-56
#define TN_LOG2_E_HIGH 0x1.71547652b82fep+0
#define TN_LOG2_E_LOW 0x1.777d0ffda0d24p-56
#define TN_HALF_PI_HIGH 0x1.921fb54442d18p+0
#define TN_HALF_PI_LOW 0x1.1a62633145c07p-54
#define TN_HALF_PI_FIRST 0x1.921fb54400000p+0
#define TN_HALF_PI_SECOND 0x1.0b4611a600000p-34
#define TN_HALF_PI_THIRD 0x1.3198a2e037073p-69

/* 2^(j / 64) in two parts. */
static const double tn_exp_table[64][2] = {
    {0x1.p+0, 0x0.0p+0}, {0x1.02c9a3e778061p+0, -0x1.19083535b085dp-56},
    {0x1.059b0d3158574p+0, 0x1.d73e2a475b465p-55}, {0x1.0874518759bc8p+0, 0x1.186be4bb284ffp-57},
    {0x1.0b5586cf9890fp+0, 0x1.8a62e4adc610bp-54}, {0x1.0e3ec32d3d1a2p+0, 0x1.03a1727c57b53p-59},
    {0x1.11301d0125b51p+0, -0x1.6c51039449b3ap-54}, {0x1.1429aaea92de0p+0, -0x1.32fbf9af1369ep-54},
    {0x1.172b83c7d517bp+0, -0x1.19041b9d78a76p-55}, {0x1.1a35beb6fcb75p+0, 0x1.e5b4c7b4968e4p-55},
    {0x1.1d4873168b9aap+0, 0x1.e016e00a2643cp-54}, {0x1.2063b88628cd6p+0, 0x1.dc775814a8495p-55},
    {0x1.2387a6e756238p+0, 0x1.9b07eb6c70573p-54}, {0x1.26b4565e27cddp+0, 0x1.2bd339940e9d9p-55},
    {0x1.29e9df51fdee1p+0, 0x1.612e8afad1255p-55}, {0x1.2d285a6e4030bp+0, 0x1.0024754db41d5p-54},
    {0x1.306fe0a31b715p+0, 0x1.6f46ad23182e4p-55}, {0x1.33c08b26416ffp+0, 0x1.32721843659a6p-54},
    {0x1.371a7373aa9cbp+0, -0x1.63aeabf42eae2p-54}, {0x1.3a7db34e59ff7p+0, -0x1.5e436d661f5e3p-56},
    {0x1.3dea64c123422p+0, 0x1.ada0911f09ebcp-55}, {0x1.4160a21f72e2ap+0, -0x1.ef3691c309278p-58},
    {0x1.44e086061892dp+0, 0x1.89b7a04ef80d0p-59}, {0x1.486a2b5c13cd0p+0, 0x1.3c1a3b69062f0p-56},
    {0x1.4bfdad5362a27p+0, 0x1.d4397afec42e2p-56}, {0x1.4f9b2769d2ca7p+0, -0x1.4b309d25957e3p-54},
    {0x1.5342b569d4f82p+0, -0x1.07abe1db13cadp-55}, {0x1.56f4736b527dap+0, 0x1.9bb2c011d93adp-54},
    {0x1.5ab07dd485429p+0, 0x1.6324c054647adp-54}, {0x1.5e76f15ad2148p+0, 0x1.ba6f93080e65ep-54},
    {0x1.6247eb03a5585p+0, -0x1.383c17e40b497p-54}, {0x1.6623882552225p+0, -0x1.bb60987591c34p-54},
    {0x1.6a09e667f3bcdp+0, -0x1.bdd3413b26456p-54}, {0x1.6dfb23c651a2fp+0, -0x1.bbe3a683c88abp-57},
    {0x1.71f75e8ec5f74p+0, -0x1.16e4786887a99p-55}, {0x1.75feb564267c9p+0, -0x1.0245957316dd3p-54},
    {0x1.7a11473eb0187p+0, -0x1.41577ee04992fp-55}, {0x1.7e2f336cf4e62p+0, 0x1.05d02ba15797ep-56},
    {0x1.82589994cce13p+0, -0x1.d4c1dd41532d8p-54}, {0x1.868d99b4492edp+0, -0x1.fc6f89bd4f6bap-54},
    {0x1.8ace5422aa0dbp+0, 0x1.6e9f156864b27p-54}, {0x1.8f1ae99157736p+0, 0x1.5cc13a2e3976cp-55},
    {0x1.93737b0cdc5e5p+0, -0x1.75fc781b57ebcp-57}, {0x1.97d829fde4e50p+0, -0x1.d185b7c1b85d1p-54},
    {0x1.9c49182a3f090p+0, 0x1.c7c46b071f2bep-56}, {0x1.a0c667b5de565p+0, -0x1.359495d1cd533p-54},
    {0x1.a5503b23e255dp+0, -0x1.d2f6edb8d41e1p-54}, {0x1.a9e6b5579fdbfp+0, 0x1.0fac90ef7fd31p-54},
    {0x1.ae89f995ad3adp+0, 0x1.7a1cd345dcc81p-54}, {0x1.b33a2b84f15fbp+0, -0x1.2805e3084d708p-57},
    {0x1.b7f76f2fb5e47p+0, -0x1.5584f7e54ac3bp-56}, {0x1.bcc1e904bc1d2p+0, 0x1.23dd07a2d9e84p-55},
    {0x1.c199bdd85529cp+0, 0x1.11065895048ddp-55}, {0x1.c67f12e57d14bp+0, 0x1.2884dff483cadp-54},
    {0x1.cb720dcef9069p+0, 0x1.503cbd1e949dbp-56}, {0x1.d072d4a07897cp+0, -0x1.cbc3743797a9cp-54},
    {0x1.d5818dcfba487p+0, 0x1.2ed02d75b3707p-55}, {0x1.da9e603db3285p+0, 0x1.c2300696db532p-54},
    {0x1.dfc97337b9b5fp+0, -0x1.1a5cd4f184b5cp-54}, {0x1.e502ee78b3ff6p+0, 0x1.39e8980a9cc8fp-55},
    {0x1.ea4afa2a490dap+0, -0x1.e9c23179c2893p-54}, {0x1.efa1bee615a27p+0, 0x1.dc7f486a4b6b0p-54},
    {0x1.f50765b6e4540p+0, 0x1.9d3e12dd8a18bp-54}, {0x1.fa7c1819e90d8p+0, 0x1.74853f3a5931ep-55}};

/* 1024 times a number close to the inverse of those in interval j of [1, 2), or their halves. */
static const uint16_t tn_log_inverses[128] = {
    1024, 1012, 1004, 997, 989, 982, 975, 967, 960, 953, 946, 940, 933, 926, 920, 913, 907, 901, 895, 889,
    883, 877, 871, 865, 859, 854, 848, 843, 838, 832, 827, 822, 817, 812, 807, 802, 797, 792, 787, 783,
    778, 773, 769, 764, 760, 755, 751, 747, 743, 738, 734, 730, 726, 1444, 1436, 1429, 1421, 1413, 1406, 1398,
    1391, 1383, 1376, 1369, 1362, 1355, 1348, 1341, 1334, 1327, 1321, 1314, 1307, 1301, 1295, 1288, 1282, 1276, 1269, 1263,
    1257, 1251, 1245, 1239, 1234, 1228, 1222, 1216, 1211, 1205, 1200, 1194, 1189, 1183, 1178, 1173, 1168, 1163, 1157, 1152,
    1147, 1142, 1137, 1132, 1128, 1123, 1118, 1113, 1108, 1104, 1099, 1095, 1090, 1085, 1081, 1077, 1072, 1068, 1063, 1059,
    1055, 1051, 1046, 1042, 1038, 1034, 1030, 1024};

/* -log(tn_log_inverses[j] / 1024) in two parts, the first a multiple of 2^-42. */
static const double tn_log_table[128][2] = {
    {0x0.0p+0, 0x0.0p+0}, {0x1.82448a3880000p-7, 0x1.4554412c584e0p-44},
    {0x1.432a925980000p-6, 0x1.98139928637fep-47}, {0x1.b5cc258b70000p-6, 0x1.8e611b8afbfe8p-46},
    {0x1.1ce5a62bc0000p-5, 0x1.a9cc78d8df999p-44}, {0x1.5715c4c040000p-5, -0x1.8888ddfc47628p-44},
    {0x1.91b073efd8000p-5, -0x1.9d7c53f76ca96p-46}, {0x1.d52ed64060000p-5, -0x1.3c85d2a29bbd6p-44},
    {0x1.08598b59e4000p-4, -0x1.7e5dd7009902cp-46}, {0x1.26536c3d8c000p-4, 0x1.b4bac097c5ba3p-47},
    {0x1.4485e03dbc000p-4, 0x1.fad46e8d26ab7p-44}, {0x1.5e95a4d978000p-4, 0x1.1cb7ce1d17171p-44},
    {0x1.7d33687c28000p-4, 0x1.3c88c3e706706p-44}, {0x1.9c0c32d4d4000p-4, -0x1.ab7c09e838668p-44},
    {0x1.b6ac88dad4000p-4, 0x1.b1bdff50225c7p-44}, {0x1.d5f5565920000p-4, 0x1.0e239cc185469p-44},
    {0x1.f0f70cdd98000p-4, 0x1.2e31f6c272c1ep-44}, {0x1.06135354d4000p-3, 0x1.6304628340ee9p-44},
    {0x1.13c2605c3a000p-3, -0x1.cf5fdd94f6509p-45}, {0x1.2188fd9808000p-3, -0x1.b3a1e7f50c701p-44},
    {0x1.2f677cbbc0000p-3, 0x1.52b302160f40dp-44}, {0x1.3d5e3126bc000p-3, 0x1.3fb2f85096c4bp-46},
    {0x1.4b6d6fefe2000p-3, 0x1.522ecf56e7952p-46}, {0x1.59958ff1d6000p-3, -0x1.a1d059769ca05p-44},
    {0x1.67d6e9d786000p-3, -0x1.11e8830a706d3p-44}, {0x1.73cb9074fe000p-3, -0x1.d66a90d0005a6p-44},
    {0x1.823c16551a000p-3, 0x1.e0ddb9a631e83p-46}, {0x1.8e588ebac2000p-3, 0x1.b7d5cab2d1140p-44},
    {0x1.9a8778deba000p-3, 0x1.470fa3efec390p-44}, {0x1.a93ed3c8ae000p-3, -0x1.8724350562169p-45},
    {0x1.b5971a213a000p-3, 0x1.9b50e83aa91dfp-44}, {0x1.c2028ab180000p-3, -0x1.92e0ee55c7ac6p-45},
    {0x1.ce816157f2000p-3, -0x1.9e0aba2099515p-45}, {0x1.db13db0d48000p-3, 0x1.2806a847527e6p-44},
    {0x1.e7ba35eb78000p-3, -0x1.d5eee23793649p-47}, {0x1.f474b134e0000p-3, -0x1.bae49f1df7b5ep-44},
    {0x1.00a1c6adda000p-2, 0x1.1cd8d688b9e18p-44}, {0x1.07138604d6000p-2, -0x1.e76324e912b17p-44},
    {0x1.0d8fb813eb000p-2, 0x1.ee8c88753fa35p-46}, {0x1.12c77cd007000p-2, 0x1.3b2948a11f797p-46},
    {0x1.1956d3b9bc000p-2, 0x1.7d2f73ad1aa14p-45}, {0x1.1ff0fe7cf4000p-2, 0x1.e9d5b513ff0c1p-44},
    {0x1.25410494e5000p-2, 0x1.b1d7ac0ef77f2p-44}, {0x1.2bef07cdc9000p-2, 0x1.a9cfa4a5004f4p-45},
    {0x1.314f1e1d36000p-2, -0x1.8e27ad3213cb8p-45}, {0x1.3811728565000p-2, -0x1.a71e493a0702bp-45},
    {0x1.3d81fb5947000p-2, -0x1.22c7c2a9d37a4p-45}, {0x1.42f9f3ff62000p-2, 0x1.906440f7d3354p-44},
    {0x1.487970e958000p-2, 0x1.dc1b8465cf25fp-44}, {0x1.4f637ebbaa000p-2, -0x1.fc158cb3124b9p-44},
    {0x1.54f431b7be000p-2, 0x1.a8954c0910952p-46}, {0x1.5a8cadbbee000p-2, -0x1.7c79b0af7ecf8p-48},
    {0x1.602d08af09000p-2, 0x1.ebe9176df3f65p-46}, {-0x1.5ff3070a79000p-2, -0x1.e9e439f105039p-45},
    {-0x1.5a42ab0f4d000p-2, 0x1.e63af2df7ba69p-50}, {-0x1.5541aec91c000p-2, 0x1.816aadc72eeb9p-48},
    {-0x1.4f81fe4764000p-2, 0x1.7fcf6434ff08dp-45}, {-0x1.49b9feb7c1000p-2, -0x1.dac1c58ab60d7p-44},
    {-0x1.44a41b463c000p-2, -0x1.1ee28f37cf612p-44}, {-0x1.3ecc460ef6000p-2, 0x1.6028627c1300fp-47},
    {-0x1.39a8619f45000p-2, -0x1.8ee51937354f5p-46}, {-0x1.33c05f128e000p-2, 0x1.2b906380e1a7dp-45},
    {-0x1.2e8e2bae12000p-2, 0x1.67b1e99b72bd8p-45}, {-0x1.29552f81ff000p-2, -0x1.48d301771c408p-44},
    {-0x1.241558bfd1000p-2, -0x1.00fff3228fcadp-44}, {-0x1.1ece95528b000p-2, 0x1.84e7b09b4a3b8p-46},
    {-0x1.1980d2dd42000p-2, -0x1.b7b3a7a361c9ap-45}, {-0x1.142bfeb9a0000p-2, -0x1.1ce6185b58a9ep-44},
    {-0x1.0ed005f658000p-2, 0x1.2dc75285aa803p-45}, {-0x1.096cd55591000p-2, -0x1.f998d20550a31p-44},
    {-0x1.04c8de1842000p-2, 0x1.fe6ba512ceb86p-46}, {-0x1.feb0233e60000p-3, -0x1.f316e32d5e8c7p-45},
    {-0x1.f3bfa934d6000p-3, -0x1.d9f2a937b903bp-45}, {-0x1.ea5349e23a000p-3, -0x1.81b934c73ccb5p-44},
    {-0x1.e0dbc3d92a000p-3, -0x1.59233f0529bf1p-44}, {-0x1.d5c216b4fc000p-3, 0x1.1ba91bbca681bp-45},
    {-0x1.cc320c0176000p-3, -0x1.409039a653794p-45}, {-0x1.c2968558c2000p-3, 0x1.cfd73dee38a40p-45},
    {-0x1.b7526a22e4000p-3, -0x1.c0dbf2e785490p-45}, {-0x1.ad9da1f828000p-3, 0x1.882b7c803f050p-44},
    {-0x1.a3dd04b938000p-3, -0x1.97da1366e2c5ap-45}, {-0x1.9a10756988000p-3, -0x1.64aa6242cd098p-45},
    {-0x1.9037d6a180000p-3, -0x1.30dea57c1c8d9p-45}, {-0x1.86530a8c70000p-3, -0x1.98bb0cb4ea3e3p-44},
    {-0x1.7e0afd630c000p-3, -0x1.39e7c1d8f1034p-46}, {-0x1.740f8f5404000p-3, 0x1.0b66c99018aa1p-44},
    {-0x1.6a079d0f7a000p-3, -0x1.5a3f8448d14f5p-44}, {-0x1.5ff3070a7a000p-3, 0x1.8586f183bebf2p-44},
    {-0x1.5782cb3092000p-3, 0x1.3a46351794442p-44}, {-0x1.4d56b5798e000p-3, -0x1.8058015a96555p-44},
    {-0x1.44d2b6ccb8000p-3, 0x1.70cc16135783cp-46}, {-0x1.3a8eb2d31a000p-3, -0x1.bafb77d5d503ep-46},
    {-0x1.31f693eb1a000p-3, 0x1.a6726e5a396fbp-45}, {-0x1.279a300ab4000p-3, -0x1.ef432b3235108p-44},
    {-0x1.1eed90e2dc000p-3, -0x1.615637097648fp-46}, {-0x1.16377fb124000p-3, -0x1.91e1abf41763ep-47},
    {-0x1.0d77e7cd08000p-3, -0x1.cb2cd2ee2f482p-44}, {-0x1.04aeb449f6000p-3, -0x1.afa9065ccd35cp-45},
    {-0x1.f42dba3a24000p-4, 0x1.312b732df6c0dp-44}, {-0x1.e27076e2b0000p-4, 0x1.a342c2af0003cp-45},
    {-0x1.d09f72b4c4000p-4, -0x1.048c000354e33p-45}, {-0x1.beba818148000p-4, 0x1.89b78b6df1f57p-44},
    {-0x1.acc1768434000p-4, 0x1.aa783a0b7fa4cp-45}, {-0x1.9ab4246204000p-4, 0x1.8a64826787061p-45},
    {-0x1.8c345d6318000p-4, -0x1.b20f5acb42a66p-44}, {-0x1.7a0216f648000p-4, -0x1.e124ca18418ffp-44},
    {-0x1.67bb0726ec000p-4, -0x1.f724b69ef5912p-49}, {-0x1.555efe40b4000p-4, -0x1.0b4978c868e23p-44},
    {-0x1.42edcbea64000p-4, -0x1.bc0eeea7c9acdp-46}, {-0x1.341d7961bc000p-4, -0x1.1d09299837610p-44},
    {-0x1.2185b3b75c000p-4, 0x1.e3189f8f32304p-44}, {-0x1.1296444030000p-4, 0x1.d53bb751aa773p-44},
    {-0x1.ffae9119b8000p-5, -0x1.303374262c554p-45}, {-0x1.da0478be38000p-5, -0x1.252c7b1f6fe05p-45},
    {-0x1.bbc2bfc450000p-5, 0x1.7d18691417dafp-46}, {-0x1.9d644fdff8000p-5, -0x1.13c90539a473bp-44},
    {-0x1.77458f6330000p-5, 0x1.181dce586af09p-44}, {-0x1.58a5bafc90000p-5, 0x1.b2b739570ad39p-45},
    {-0x1.32348c7000000p-5, -0x1.696db90b1e49fp-45}, {-0x1.1352378598000p-5, 0x1.c1ac3b71fa59bp-46},
    {-0x1.e8a3ee30d0000p-6, 0x1.1a9fa3de53900p-45}, {-0x1.aa6721ee80000p-6, -0x1.ad4eb5c5af494p-45},
    {-0x1.5c45a51b90000p-6, 0x1.63bb6216d87d8p-45}, {-0x1.1d7f7eb9f0000p-6, 0x1.4193a83fcc7a6p-46},
    {-0x1.bcf712c740000p-7, -0x1.c25e097bd9771p-46}, {-0x1.3e7295d260000p-7, 0x1.609c1ff29a114p-45},
    {-0x1.7ee11ebd80000p-8, -0x1.749d3c2d23a07p-47}, {0x0.0p+0, 0x0.0p+0}};

/* The bits of 2 / pi, behind 64 zeros. */
static const uint32_t tn_quadrant_words[39] = {
    0, 0, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu,
    0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu, 0xe88235f5u, 0x2ebb4484u,
    0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu, 0xde05980fu, 0xef2f118bu,
    0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau,
    0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u};

/* erf(x) / x - 9 / 8 as a series of x^2. */
static const double tn_erf_series[15] = {
    0x1.baea08536da23p-9, -0x1.812746b0379e7p-2, 0x1.ce2f21a042be2p-4, -0x1.b82ce31288b51p-6,
    0x1.565bcd0e6a53fp-8, -0x1.c02db40040b86p-11, 0x1.f9a326f9b89b7p-14, -0x1.f4d25c3e0c2ebp-17,
    0x1.b9e6c9dc651a3p-20, -0x1.5f742ec43e71ap-23, 0x1.fcc5720624c1cp-27, -0x1.51d7181c5d36dp-30,
    0x1.9e6ad5e55a730p-34, -0x1.d8453cb0c46eap-38, 0x1.f683ae4a97007p-42};

/* erf(j / 8), from j = 4 on, in two parts, and its derivative. */
static const double tn_erf_table[45][3] = {
    {0x1.0a7ef5c18edd2p-1, 0x1.5e809f1a31a28p-56, 0x1.c1efca49a5011p-1},
    {0x1.3f196dcd0f135p-1, -0x1.f25f4f6fdf70bp-56, 0x1.86e9694134b9ep-1},
    {0x1.6c1c9759d0e5fp-1, 0x1.b1432f2cbc455p-55, 0x1.492e42d78d2c5p-1},
    {0x1.91724951b8fc6p-1, -0x1.27912dd352f8bp-55, 0x1.0cab61f084b93p-1},
    {0x1.af767a741088bp-1, -0x1.c97f778122797p-56, 0x1.a911f096fbc26p-2},
    {0x1.c6dad2829ec62p-1, -0x1.ab76d4cba3d05p-57, 0x1.45e99bcbb7915p-2},
    {0x1.d8865d98abe01p-1, -0x1.fcec4afb974d9p-55, 0x1.e4652fadcb6b2p-3},
    {0x1.e5768c3b4a3fcp-1, 0x1.8b62674f89890p-57, 0x1.5ce595c455b0ap-3},
    {0x1.eea5557137ae0p-1, -0x1.385e445f2c96dp-55, 0x1.e723726b824a9p-4},
    {0x1.f4f693b67bd77p-1, -0x1.3a1ee1406c356p-56, 0x1.499d478bca735p-4},
    {0x1.f92d077f8d56dp-1, 0x1.8b55ef493fce7p-56, 0x1.b055303221015p-5},
    {0x1.fbe61eef4cf6ap-1, 0x1.15ded88667618p-55, 0x1.12ceb37ff9bc3p-5},
    {0x1.fd9ae142795e3p-1, 0x1.972801904b9a3p-56, 0x1.529b9e8cf9a1ep-6},
    {0x1.fea4218d6594ap-1, -0x1.e3333d8f7d98cp-58, 0x1.94624e78e0fafp-7},
    {0x1.ff404760319b4p-1, 0x1.f142071432025p-56, 0x1.d4143a9dfe965p-8},
    {0x1.ff9960f3eb327p-1, -0x1.08b1ca6e97f80p-56, 0x1.06918b6355624p-8},
    {0x1.ffcaa8f4c9beap-1, 0x1.b0cee160116f9p-55, 0x1.1d83170fbf6fbp-9},
    {0x1.ffe514bbdc197p-1, -0x1.cd963345b5c6dp-58, 0x1.2ce898809244ep-10},
    {0x1.fff2cfb0453d9p-1, 0x1.9a913686042a3p-55, 0x1.3360ccd23db3ap-11},
    {0x1.fff9ba420e834p-1, 0x1.1379ec5aa630ep-56, 0x1.30538fbb77ecdp-12},
    {0x1.fffd1ac4135f9p-1, 0x1.eeafa1ecd6cefp-55, 0x1.2408e9ba3327fp-13},
    {0x1.fffeb3ebb267bp-1, 0x1.e47f697047cbap-57, 0x1.0f9e1b4dd36dfp-14},
    {0x1.ffff6f9f67e55p-1, 0x1.e1e4483ba034bp-55, 0x1.e9b5e8d00ce77p-16},
    {0x1.ffffc316d9ed0p-1, -0x1.8b32f44f46b3bp-55, 0x1.abe09e9144b5ep-17},
    {0x1.ffffe710d565ep-1, 0x1.c9ea52d76dc04p-55, 0x1.6a597219a93dap-18},
    {0x1.fffff618c3da6p-1, -0x1.19309ce23aa3ep-58, 0x1.296a70f414053p-19},
    {0x1.fffffc2f171e3p-1, 0x1.85edd0395f475p-55, 0x1.d9371e2ff7c35p-21},
    {0x1.fffffe92ced93p-1, -0x1.d2db2ecfe14aep-55, 0x1.6ce1aa3fd7bddp-22},
    {0x1.ffffff7b91176p-1, 0x1.0b2865615db40p-56, 0x1.10b1488aeb235p-23},
    {0x1.ffffffd169d0cp-1, 0x1.70a2bfb068e6fp-55, 0x1.8b0cfce0579e0p-25},
    {0x1.fffffff01a8b6p-1, 0x1.23370eca5ca6ap-60, 0x1.155a09065d4f7p-26},
    {0x1.fffffffabd229p-1, -0x1.4dbe49bec3ef2p-57, 0x1.7974e743dea3dp-28},
    {0x1.fffffffe4fa30p-1, 0x1.d166bcb681c7bp-57, 0x1.f1e3523b41d7dp-30},
    {0x1.ffffffff79626p-1, 0x1.5fbc52d650a89p-55, 0x1.3e44e45301b92p-31},
    {0x1.ffffffffd759dp-1, 0x1.f7bee7eb23420p-55, 0x1.8a61745ec7d1dp-33},
    {0x1.fffffffff4188p-1, 0x1.7a2cb3d056eacp-55, 0x1.d9a880f306bd8p-35},
    {0x1.fffffffffc9e8p-1, -0x1.a759f7738935fp-56, 0x1.13af4f04f9998p-36},
    {0x1.ffffffffff11ap-1, -0x1.3eafccbc6e8b7p-56, 0x1.370ab8327af5ep-38},
    {0x1.ffffffffffc05p-1, 0x1.07ba96a6b2e1ap-55, 0x1.5422ef5d8949dp-40},
    {0x1.ffffffffffef8p-1, 0x1.14be6226402c7p-56, 0x1.68823e52970bep-42},
    {0x1.fffffffffffbep-1, -0x1.182b326b228dcp-55, 0x1.7258610b3b233p-44},
    {0x1.ffffffffffff0p-1, -0x1.20ef3618f2d54p-56, 0x1.70beaf9c7ffb6p-46},
    {0x1.ffffffffffffcp-1, 0x1.8115fd1b12786p-56, 0x1.63daf8b4b1e0cp-48},
    {0x1.fffffffffffffp-1, 0x1.0439397b5f70ap-56, 0x1.4cd9c04158cd7p-50},
    {0x1.p+0, -0x1.8cf81557d20b6p-56, 0x1.2dc119095729fp-52}};

#endif
