// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
import java.util.HashMap;

public class Threads {
	static volatile long racy;

	public static void main(String[] args) throws Exception {
		HashMap<Object, Integer> map = new HashMap<>();
		Thread[] threads = new Thread[3];
		long sum = 0;

		for (int i = 0; i < 50000; i++)
			map.put(new Object(), i);
		for (int value : map.values())
			sum = sum * 31 + value;
		for (int i = 0; i < 3; i++) {
			threads[i] = new Thread(() -> {
				for (int k = 0; k < 300000; k++)
					racy++;
			});
			threads[i].start();
		}
		for (Thread t : threads)
			t.join();
		System.out.println(sum + " " + racy);
	}
}
