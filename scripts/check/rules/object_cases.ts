/** Cases of what a transaction may do with values and objects. */
import { type Case, object } from './case.ts';

export const OBJECT_CASES: readonly Case[] = [
  {
    name: 'one object as &mut and as &',
    outcome: 'InvalidReferenceArgument at 0.0',
    needs: ['thing'],
    build: (tx, { call }, [id]) => call(tx, 'both', [object(tx, id), object(tx, id)]),
  },
  {
    name: 'one object twice as &mut',
    outcome: 'InvalidReferenceArgument at 0.0',
    needs: ['thing'],
    build: (tx, { call }, [id]) => call(tx, 'swap', [object(tx, id), object(tx, id)]),
  },
  {
    name: 'one object twice as &',
    outcome: 'done',
    needs: ['thing'],
    effects: ['changed'],
    build: (tx, { call }, [id]) => call(tx, 'look', [object(tx, id), object(tx, id)]),
  },
  {
    name: 'an object by value that is borrowed',
    outcome: 'CannotMoveBorrowedValue at 0.1',
    needs: ['thing'],
    build: (tx, { call }, [id]) => call(tx, 'absorb', [object(tx, id), object(tx, id)]),
  },
  {
    name: 'an object that an earlier argument took',
    outcome: 'ArgumentWithoutValue at 0.1',
    needs: ['thing'],
    build: (tx, { call }, [id]) => call(tx, 'take_then_read', [object(tx, id), object(tx, id)]),
  },
  {
    name: 'an object that an earlier command took',
    outcome: 'ArgumentWithoutValue at 1.0',
    needs: ['thing'],
    build(tx, { call }, [id]) {
      call(tx, 'take', [object(tx, id)]);
      call(tx, 'read', [object(tx, id)]);
    },
  },
  {
    name: 'a result without drop that no command uses',
    outcome: 'UnusedValueWithoutDrop',
    build: (tx, { call }) => call(tx, 'thing', [tx.pure.u64(1)]),
  },
  {
    name: 'a vector of objects',
    outcome: 'done',
    needs: ['thing', 'thing'],
    effects: ['deleted', 'deleted'],
    build: (tx, { call }, ids) =>
      call(tx, 'take_all', [tx.makeMoveVec({ elements: ids.map((id) => object(tx, id)) })]),
  },
  {
    name: 'a vector of bytes without a type',
    outcome: 'InvalidMakeMoveVecNonObjectArgument at 0.0',
    build: (tx) => tx.makeMoveVec({ elements: [tx.pure.u64(1)] }),
  },
  {
    name: 'a transfer of an object without store',
    outcome: 'InvalidTransferObject at 1.0',
    build(tx, { call, sender }) {
      tx.transferObjects([call(tx, 'pinned', [tx.pure.u64(1)])], sender);
    },
  },
  {
    name: 'a transfer of nothing',
    outcome: /^refused: .*cannot have empty arguments/,
    build: (tx, { sender }) => tx.transferObjects([], sender),
  },
  {
    name: 'a shared object, transferred',
    outcome: 'SharedObjectOperationNotAllowed',
    needs: ['shared'],
    build: (tx, { sender }, [id]) => tx.transferObjects([object(tx, id)], sender),
  },
  {
    name: 'a shared object, frozen',
    outcome: 'SharedObjectOperationNotAllowed',
    needs: ['shared'],
    build: (tx, { call }, [id]) => call(tx, 'freeze_it', [object(tx, id)]),
  },
  {
    name: 'a shared object, wrapped',
    outcome: 'SharedObjectOperationNotAllowed',
    needs: ['shared'],
    build: (tx, { call, sender }, [id]) => tx.transferObjects([call(tx, 'wrap', [object(tx, id)])], sender),
  },
  {
    name: 'a shared object, shared again',
    outcome: 'done',
    needs: ['shared'],
    effects: ['changed'],
    build: (tx, { call }, [id]) => call(tx, 'share', [object(tx, id)]),
  },
  {
    name: 'a shared object, deleted',
    outcome: 'done',
    needs: ['shared'],
    effects: ['deleted'],
    build: (tx, { call }, [id]) => call(tx, 'take', [object(tx, id)]),
  },
  {
    name: 'an owned object, shared',
    outcome: 'abort transfer::share_object_impl 0',
    needs: ['thing'],
    build: (tx, { call }, [id]) => call(tx, 'share', [object(tx, id)]),
  },
  {
    name: 'a frozen object, changed',
    outcome: 'InvalidObjectByMutRef at 0.0',
    needs: ['frozen'],
    build: (tx, { call }, [id]) => call(tx, 'write', [object(tx, id), tx.pure.u64(1)]),
  },
  {
    name: 'a frozen object, taken',
    outcome: 'InvalidObjectByValue at 0.0',
    needs: ['frozen'],
    build: (tx, { call }, [id]) => call(tx, 'take', [object(tx, id)]),
  },
  {
    name: 'a frozen object, read',
    outcome: 'done',
    needs: ['frozen'],
    effects: ['untouched'],
    build: (tx, { call }, [id]) => call(tx, 'read', [object(tx, id)]),
  },
  {
    name: 'a shared object, read: the node resolves it as immutable',
    outcome: 'done',
    needs: ['shared'],
    effects: ['untouched'],
    build: (tx, { call }, [id]) => call(tx, 'read', [object(tx, id)]),
  },
  {
    name: 'a shared object, changed',
    outcome: 'done',
    needs: ['shared'],
    effects: ['changed'],
    build: (tx, { call }, [id]) => call(tx, 'write', [object(tx, id), tx.pure.u64(1)]),
  },
  {
    name: 'a shared object that is declared immutable, changed',
    outcome: 'InvalidObjectByMutRef at 0.0',
    needs: ['shared'],
    build(tx, { call }, [id = '']) {
      tx.addBuildPlugin(async (data, _, next) => {
        await next();
        for (const input of data.inputs) {
          const shared = input.Object?.SharedObject;
          if (shared?.objectId === id) Object.assign(shared, { mutable: false });
        }
      });
      call(tx, 'write', [object(tx, id), tx.pure.u64(1)]);
    },
  },
  {
    name: 'the clock by its id',
    outcome: 'done',
    build: (tx, { call }) => call(tx, 'enter_clock', [tx.object('0x6')]),
  },
  {
    name: 'an object that is only read',
    outcome: 'done',
    needs: ['thing'],
    effects: ['changed'],
    build: (tx, { call }, [id]) => call(tx, 'read', [object(tx, id)]),
  },
  {
    name: 'an object, wrapped',
    outcome: 'done',
    needs: ['thing'],
    effects: ['gone'],
    build: (tx, { call, sender }, [id]) => tx.transferObjects([call(tx, 'wrap', [object(tx, id)])], sender),
  },
  {
    name: 'an object, wrapped and unwrapped',
    outcome: 'done',
    needs: ['thing'],
    effects: ['changed'],
    build: (tx, { call, sender }, [id]) =>
      tx.transferObjects([call(tx, 'unwrap', [call(tx, 'wrap', [object(tx, id)])])], sender),
  },
];
